#include "experiments/shell/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/error.hpp"

namespace manyworlds::experiments::shell {
namespace {

constexpr std::size_t kMaxWork = 50'000'000;
constexpr std::string_view kNotSet = ", which the script does not set";
constexpr std::array<std::string_view, 8> kPrefixes{"SLURM", "PMI",  "PMIX",         "OMPI",
                                                    "PBS_",  "LSB_", "TORCHELASTIC", "AZ"};
constexpr std::array<std::string_view, 19> kNames{
    "RANK",  "WORLD_SIZE", "LOCAL_RANK",          "LOCAL_WORLD_SIZE", "HOME",   "PWD",    "USER",    "HOSTNAME",
    "PATH",  "PYTHONPATH", "LD_LIBRARY_PATH",     "BASH_SOURCE",      "LINENO", "RANDOM", "SECONDS", "OLDPWD",
    "SHELL", "OSTYPE",     "CUDA_VISIBLE_DEVICES"};

}  // namespace

void Environment::work(std::size_t amount, const Place& place) {
  work_ += amount + 1;
  if (work_ > kMaxWork)
    throw core::InputError(
        "following the script takes more than a launch script should need; give its final "
        "arguments, as a log prints them",
        place.file ? *place.file : "", place.line);
}

bool is_set_elsewhere(const std::string& name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view one) { return name.starts_with(one); });
}

bool is_size(const std::string& name) {
  constexpr std::array<std::string_view, 12> kSizes{"SLURM_NNODES",       "SLURM_JOB_NUM_NODES",   "SLURM_NTASKS",
                                                    "SLURM_NPROCS",       "SLURM_NTASKS_PER_NODE", "SLURM_GPUS",
                                                    "SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE",   "WORLD_SIZE",
                                                    "LOCAL_WORLD_SIZE",   "OMPI_COMM_WORLD_SIZE",  "PMI_SIZE"};
  return std::find(kSizes.begin(), kSizes.end(), name) != kSizes.end();
}

std::string unset_variable(const std::string& name) {
  return is_set_elsewhere(name) ? unknown(fmt::format("${}, which is set where the job runs", name))
                                : unknown(fmt::format("${}{}", name, kNotSet));
}

std::string name_if_unset(const std::string& text) {
  const std::string why = why_unknown(text);
  if (why.empty() || !why.ends_with(kNotSet) || text != unknown(why)) return "";
  return why.substr(1, why.size() - kNotSet.size() - 1);
}

}  // namespace manyworlds::experiments::shell
