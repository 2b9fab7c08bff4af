#include "experiments/kernels/kineto_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/base/error.hpp"
#include "experiments/kernels/operator_kernels.hpp"
#include "experiments/text/json.hpp"
#include "experiments/text/unsupported_row.hpp"

namespace manyworlds::experiments::import {
namespace {

using core::InputError;
using nlohmann::json;
using namespace core::compute;

/// Returns a member of an object, or null.
const json* member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string text_of(const json& object, const char* name) {
  const json* found = member(object, name);
  return found && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<std::int64_t> integer_of(const json& object, const char* name) {
  const json* found = member(object, name);
  if (!found || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

/// The kernels of one operator, in the order in which they first appear.
struct Launched {
  const json* op = nullptr;
  double us = 0;
};

class Trace {
 public:
  Trace(const json& document, const std::string& file) : file_(file) {
    const json* events = member(document, "traceEvents");
    if (!events) events = &document;  // the other form that Chrome's trace format allows
    if (!events->is_array()) throw InputError("is no trace of the PyTorch profiler: it has no list traceEvents", file);
    if (const json* devices = member(document, "deviceProperties"); devices && devices->is_array() && !devices->empty())
      device_ = text_of(devices->front(), "name");
    for (const json& event : *events)
      if (text_of(event, "cat") == "cpu_op") add_operator(event);
    for (const json& event : *events)
      if (text_of(event, "cat") == "kernel") add_kernel(event);
    if (launched_.empty() && without_operator_ == 0)
      throw InputError("its trace has no kernel (events of category \"kernel\"); profile with ProfilerActivity.CUDA",
                       file);
  }

  std::vector<KernelSample> samples() const {
    std::vector<KernelSample> samples;
    for (const Launched& one : launched_) samples.push_back(sample_of(one));
    for (std::size_t i = 0; i < without_operator_; ++i) {
      samples.push_back(empty_sample());
      samples.back().unsupported = "no operator of the trace launched it";
    }
    return samples;
  }

 private:
  static std::optional<std::int64_t> external_id(const json& event) {
    const json* args = member(event, "args");
    return args ? integer_of(*args, "External id") : std::nullopt;
  }

  void add_operator(const json& event) {
    if (const auto id = external_id(event)) operators_.emplace(*id, &event);
  }

  void add_kernel(const json& event) {
    const auto id = external_id(event);
    const auto found = id ? operators_.find(*id) : operators_.end();
    const json* duration = member(event, "dur");
    if (found == operators_.end() || !duration || !duration->is_number()) {
      ++without_operator_;
      return;
    }
    const auto [slot, is_new] = slots_.try_emplace(*id, launched_.size());
    if (is_new) launched_.push_back({found->second, 0});
    launched_[slot->second].us += duration->get<double>();
  }

  KernelSample empty_sample() const {
    KernelSample sample;
    sample.id = file_;
    sample.device = device_;
    sample.power = PowerState::sustained;
    sample.with_launch = false;
    return sample;
  }

  KernelSample sample_of(const Launched& launched) const {
    KernelSample sample = empty_sample();
    const std::string name = text_of(*launched.op, "name");
    sample.measured_us = launched.us;
    read_supported(sample, [&] {
      if (!(launched.us > 0) || !std::isfinite(launched.us)) throw UnsupportedRow{"its time is not above 0", name};
      const OperatorKernel known = kernel_of_operator(name, member(*launched.op, "args"));
      if (known.for_scaling_alone != nullptr) throw UnsupportedRow{known.for_scaling_alone, name};
      sample.kernel = known.kernel;
      sample.kind = sample_kind(sample.kernel) + " in a step";
    });
    return sample;
  }

  const std::string& file_;
  std::string device_;
  std::map<std::int64_t, const json*> operators_;
  std::map<std::int64_t, std::size_t> slots_;
  std::vector<Launched> launched_;
  std::size_t without_operator_ = 0;
};

}  // namespace

bool is_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

std::vector<KernelSample> parse_kineto_trace(std::string_view text, const std::string& name) {
  const json document = parse_json(text, name, kMaxTableBytes);
  return Trace(document, name).samples();
}

}  // namespace manyworlds::experiments::import
