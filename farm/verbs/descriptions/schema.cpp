// `manyworlds schema`: the JSON Schema of a sweep, for editors.
#include "experiments/sweep/schema.hpp"

#include <iostream>

#include "farm/cli/parsing/command.hpp"
#include "farm/system/exit_code.hpp"

namespace manyworlds::farm::commands {
namespace {

int run_schema(const Invocation& invocation) {
  cxxopts::Options options("manyworlds schema", "The JSON Schema of a sweep, for editors.");
  options.add_options()("catalog", "a folder or file with more gpus, libraries, models, clusters and stacks",
                        cxxopts::value<std::string>()->default_value(""), "DIR");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  std::string text = experiments::json_schema(experiments::Catalog((*parsed)["catalog"].as<std::string>()));
  if (!text.ends_with('\n')) text += '\n';
  std::cout << text;
  return kExitDone;
}

}  // namespace

Command schema_command() {
  return {.name = "schema", .summary = "JSON Schema of a sweep, for editors", .run = run_schema};
}

}  // namespace manyworlds::farm::commands
