#include "experiments/kineto/host_trace.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/base/error.hpp"
#include "experiments/kineto/mended_json.hpp"
#include "experiments/text/json.hpp"

namespace manyworlds::experiments::kineto {
namespace {

using core::InputError;
using nlohmann::json;

constexpr int kMaxDepth = 64;
constexpr const char* kNone = "is no execution trace of PyTorch's host of schema 1.1 or later";

const json* member(const json& object, const char* name, json::value_t type) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found != object.end() && found->type() == type ? &*found : nullptr;
}

/// The number of a node's call: the attribute `rf_id`.
std::optional<std::int64_t> function_of(const json& node) {
  const json* attributes = member(node, "attrs", json::value_t::array);
  if (attributes == nullptr) return std::nullopt;
  for (const json& attribute : *attributes) {
    const json* name = member(attribute, "name", json::value_t::string);
    if (name == nullptr || *name != "rf_id") continue;
    const auto value = attribute.find("value");
    if (value == attribute.end() || !value->is_number_unsigned()) return std::nullopt;
    return value->get<std::int64_t>();
  }
  return std::nullopt;
}

/// The name of a type as the profiler writes it: of a tensor that of its elements.
json type_of(const json& type) {
  constexpr std::string_view kTensor = "Tensor(";
  if (!type.is_string()) return "";
  const std::string& text = type.get_ref<const std::string&>();
  return text.starts_with(kTensor) && text.ends_with(')')
             ? text.substr(kTensor.size(), text.size() - kTensor.size() - 1)
             : text;
}

/// Returns the members of an operator's arguments as a trace with shapes has them.
std::string inputs_of(const json& inputs) {
  json arguments = json::object();
  if (const json* shapes = member(inputs, "shapes", json::value_t::array)) arguments["Input Dims"] = *shapes;
  if (const json* strides = member(inputs, "strides", json::value_t::array)) arguments["Input Strides"] = *strides;
  if (const json* types = member(inputs, "types", json::value_t::array))
    for (const json& type : *types) arguments["Input type"].push_back(type_of(type));
  if (const json* values = member(inputs, "values", json::value_t::array))
    for (const json& value : *values)
      arguments["Concrete Inputs"].push_back(value.is_boolean() ? (value.get<bool>() ? "True" : "False") : "");
  const std::string text = arguments.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);
}

class Nodes {
 public:
  explicit Nodes(const std::string& file) : file_(file) {}

  /// Takes the parser's events; returns whether what was parsed is kept.
  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    if (depth == 1) find_schema(event, parsed);
    if (depth > kMaxDepth) throw InputError(fmt::format("is nested deeper than {} levels", kMaxDepth), file_);
    if (depth != 2 || event != json::parse_event_t::object_end) return true;
    add(parsed);
    return false;
  }

  profiler::OperatorInputs finish(const json& document) {
    const json* schema = member(document, "schema", json::value_t::string);
    if (schema == nullptr || member(document, "nodes", json::value_t::array) == nullptr)
      throw InputError(fmt::format("{}: it has no 'schema' and 'nodes'", kNone), file_);
    if (result_.calls() == 0)
      throw InputError(
          "has no operator whose call is numbered ('rf_id'), by which a profiler's trace is linked with it", file_);
    return std::move(result_);
  }

 private:
  void find_schema(json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::key) is_schema_ = parsed == "schema";
    if (event == json::parse_event_t::value && is_schema_ && parsed.is_string()) schema_ = parsed.get<std::string>();
  }

  void add(const json& node) {
    const json *name = member(node, "name", json::value_t::string),
               *inputs = member(node, "inputs", json::value_t::object);
    if (name != nullptr && inputs == nullptr)
      throw InputError(fmt::format("{}{}: node '{}' has no object 'inputs'", kNone,
                                   schema_.empty() ? "" : fmt::format(", but of {}", schema_.substr(0, 40)),
                                   name->get_ref<const std::string&>().substr(0, 80)),
                       file_);
    const auto function = function_of(node);
    if (name == nullptr || !function || !name->get_ref<const std::string&>().starts_with("aten::")) return;
    result_.add(*function, name->get_ref<const std::string&>(), inputs_of(*inputs));
  }

  const std::string& file_;
  std::string schema_;  // as the file says it, so far
  bool is_schema_ = false;
  profiler::OperatorInputs result_;
};

}  // namespace

profiler::OperatorInputs parse_host_trace(std::istream& text, const std::string& name) {
  Nodes nodes(name);
  MendedStream mended(text);
  std::istream mended_text(&mended);
  try {
    const json document = json::parse(
        mended_text, [&](int depth, json::parse_event_t event, json& parsed) { return nodes(depth, event, parsed); });
    return nodes.finish(document);
  } catch (const json::exception& error) {
    throw import::bad_json(error, name, "");
  }
}

}  // namespace manyworlds::experiments::kineto
