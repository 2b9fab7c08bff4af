#include "farm/cli/options/job_options.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "core/base/error.hpp"
#include "experiments/catalog/cluster_files.hpp"
#include "experiments/frameworks/registry.hpp"
#include "farm/cli/options/shared_options.hpp"
#include "farm/cli/parsing/option_values.hpp"
#include "farm/search/search_space.hpp"

namespace manyworlds::farm::commands {
namespace {

constexpr std::int64_t kMaxGpus = 131'072;

std::string text_option(const cxxopts::ParseResult& parsed, const char* name) {
  return parsed.count(name) > 0 ? required(parsed, name) : "";
}

std::int64_t gpus_option(const cxxopts::ParseResult& parsed) {
  if (parsed.count("gpus") == 0) return 0;
  core::OptionInfo info;
  info.kind = core::OptionInfo::Kind::integer;
  info.minimum = 1;
  info.maximum = static_cast<double>(kMaxGpus);
  return std::get<std::int64_t>(parse_option_value(required(parsed, "gpus"), info, "--gpus"));
}

std::map<std::string, std::string> environment_option(const cxxopts::ParseResult& parsed) {
  std::map<std::string, std::string> environment;
  if (parsed.count("env") == 0) return environment;
  for (const std::string& one : parsed["env"].as<std::vector<std::string>>()) {
    const std::size_t equals = one.find('=');
    if (equals == 0 || equals == std::string::npos)
      throw core::InputError("it takes NAME=VALUE, as in --env TP=4", "--env " + one);
    if (!environment.emplace(one.substr(0, equals), one.substr(equals + 1)).second)
      throw core::InputError("is given twice; keep one", "--env " + one.substr(0, equals));
  }
  return environment;
}

/// Returns --cluster; the path of a file in full, as the document that names it is the job's, which stands elsewhere.
std::string cluster_option(const cxxopts::ParseResult& parsed) {
  const std::string given = text_option(parsed, "cluster");
  return experiments::is_cluster_file(given) ? std::filesystem::absolute(given).lexically_normal().string() : given;
}

/// Returns the YAML of the cluster that the job runs on, and notes what of it is left idle.
std::string cluster_of(const cxxopts::ParseResult& parsed, experiments::jobs::Job& job,
                       const experiments::Catalog& catalog) {
  SearchOptions options;
  options.cluster = cluster_option(parsed);
  options.gpu = text_option(parsed, "gpu");
  if (options.cluster.empty() == options.gpu.empty())
    throw core::InputError(options.gpu.empty() ? "a job's file names no machines; give --cluster NAME or --gpu NAME"
                                               : "names the GPU too; leave --gpu out",
                           "--cluster");
  if (job.gpus == 0) fail_without_gpus(job);
  options.node_list = text_option(parsed, "node-list");
  if (options.node_list.empty()) options.gpus = job.gpus;
  const ClusterSpec machines = machines_of(options, catalog);
  if (machines.gpus() != job.gpus)
    throw core::InputError(fmt::format("has {} GPUs, and the job {}", machines.gpus(), job.gpus), "--node-list");
  if (const std::string unused = unused_text(machines); !unused.empty()) job.notes.push_back("assumed: " + unused);
  return cluster_text(machines);
}

/// Returns the experiment of the job that `read` reads with a catalog, on the machines that the options name.
template <class Read>
JobExperiment experiment_of(const cxxopts::ParseResult& parsed, const std::vector<std::string>& set, const Read& read) {
  experiments::Catalog catalog(parsed["catalog"].as<std::string>());
  if (const std::string file = cluster_option(parsed); experiments::is_cluster_file(file))
    catalog.add_cluster_file(file, file);
  JobExperiment result;
  result.job = read(catalog);
  const std::string document = document_of(result.job, cluster_of(parsed, result.job, catalog));
  result.sweep = experiments::parse_sweep(document, result.job.file, set, catalog);
  return result;
}

}  // namespace

void add_like_options(cxxopts::Options& options) {
  options.add_options()(
      "like",
      "a training job's own file instead: a launch script or log of Megatron-LM, a file of torchtitan, "
      "DeepSpeed, … (docs/jobs.md)",
      cxxopts::value<std::string>(),
      "FILE")("env", "with --like: a variable that the script takes from the environment; may be given many times",
              cxxopts::value<std::vector<std::string>>(), "NAME=VALUE");
}

void add_job_options(cxxopts::Options& options) {
  add_like_options(options);
  options.add_options()(
      "cluster", "with --like: the job's machines, a cluster of the catalog or a file that `manyworlds cluster` wrote",
      cxxopts::value<std::string>(), "NAME")(
      "gpu", "with --like, instead of --cluster: the catalog's cluster of this GPU", cxxopts::value<std::string>(),
      "NAME")("gpus", "with --like: how many GPUs; default: as the file starts", cxxopts::value<std::string>(), "N")(
      "model", "with --like: the model of a file that only names one, or none", cxxopts::value<std::string>(), "NAME");
}

bool has_job(const cxxopts::ParseResult& parsed) {
  if (parsed.count("like") > 0) {
    if (parsed.count("spec") > 0) throw core::InputError("takes the place of SPEC; keep one", "--like");
    return true;
  }
  for (const char* name : {"cluster", "gpu", "gpus", "env", "model"})
    if (parsed.count(name) > 0)
      throw core::InputError("belongs to --like FILE; in a SPEC --set sets it", std::string("--") + name);
  return false;
}

experiments::jobs::Job read_job_option(const cxxopts::ParseResult& parsed, const experiments::Catalog& catalog) {
  return experiments::jobs::read_job(required(parsed, "like"),
                                     {environment_option(parsed), gpus_option(parsed), text_option(parsed, "model")},
                                     catalog);
}

JobExperiment job_experiment(const cxxopts::ParseResult& parsed, const std::vector<std::string>& set) {
  return experiment_of(parsed, set, [&](const auto& catalog) { return read_job_option(parsed, catalog); });
}

JobExperiment job_experiment(const cxxopts::ParseResult& parsed, const std::vector<std::string>& set,
                             const experiments::jobs::JobFile& file) {
  return experiment_of(parsed, set, [&](const auto& catalog) {
    return experiments::jobs::read_job(file, {environment_option(parsed), gpus_option(parsed)}, catalog);
  });
}

}  // namespace manyworlds::farm::commands
