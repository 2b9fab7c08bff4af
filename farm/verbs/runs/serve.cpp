// `manyworlds serve RUN_DIR [HOST:]PORT`: a live page of any run, read from its directory without contacting the run.
#include <cstdlib>

#include "core/base/error.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/http/access.hpp"
#include "farm/serve/live_server.hpp"
#include "farm/serve/serve_run.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "io/log/run_directory.hpp"

namespace manyworlds::farm::commands {
namespace {

int run_serve(const Invocation& invocation) {
  cxxopts::Options options("manyworlds serve", "A live page of a run, until Ctrl-C.");
  options.add_options()("run", "the run directory", cxxopts::value<std::string>())(
      "address", "where to listen: a port of this machine alone, or HOST:PORT for others, who need the token it prints",
      cxxopts::value<std::string>());
  options.parse_positional({"run", "address"});
  options.positional_help("RUN_DIR [HOST:]PORT");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const std::string directory = required(*parsed, "run");
  const serve::Address address = serve::parse_address(required(*parsed, "address"), "[HOST:]PORT");
  if (!io::is_run_directory(directory))
    io::read_serialized_sweep(directory);  // throws an error that says what is wrong
  const char* given = std::getenv(serve::kSocketVariable);
  serve::Listener listener =
      given != nullptr ? serve::Listener::inherited(std::atoi(given)) : serve::Listener::at(address, "[HOST:]PORT");
  const std::string token = listener.loopback() ? "" : serve::token_of(directory);
  if (given == nullptr) print_message("live page: {}\n", serve::live_page_url(listener, token));
  serve::serve_run(directory, std::move(listener), token,
                   given != nullptr ? serve::StopCondition::on_end_of_input : serve::StopCondition::on_signal);
  return kExitDone;
}

}  // namespace

Command serve_command() {
  return {.name = "serve", .summary = "a live page of a run", .run = run_serve};
}

}  // namespace manyworlds::farm::commands
