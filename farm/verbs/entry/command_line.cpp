// Dispatches a verb to its command and maps errors to exit codes. An error is one line on stderr that says what would
// be right.
#include "farm/verbs/entry/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/version.hpp"
#include "core/sharing/key.hpp"
#include "experiments/text/listed_error.hpp"
#include "experiments/text/nearest.hpp"
#include "farm/cli/parsing/command.hpp"
#include "farm/system/console.hpp"
#include "farm/system/exit_code.hpp"
#include "farm/worker/rank_loop.hpp"

namespace manyworlds::farm {

namespace {

std::string usage() {
  std::string text = "Usage: manyworlds VERB [options]\n\nRanks training layouts by simulating each.\n\n";
  for (const auto& command : commands::registry()) text += fmt::format("  {:<10} {}\n", command.name, command.summary);
  return text + "\n`manyworlds VERB -h` explains a verb, `manyworlds --version` names this build.\n";
}

const commands::Command* find(const std::string& verb) {
  for (const auto& command : commands::registry())
    if (command.name == verb) return &command;
  return nullptr;
}

int unknown_verb(const std::string& verb) {
  std::vector<std::string> names;
  for (const auto& command : commands::registry()) names.push_back(command.name);
  print_message("manyworlds: unknown verb '{}'{}\n", verb, experiments::suggestion(verb, names));
  return kExitInput;
}

}  // namespace

int command_line(int argc, char** argv, JobKind kind) {
  const std::vector<std::string> arguments(argv + 1, argv + std::max(argc, 1));
  const std::string verb = arguments.empty() ? "" : arguments[0];
  const TerminalFilter filter(std::cout);
  if (verb.empty()) {
    print_lines(usage());
    return kExitInput;
  }
  if (verb == "-h" || verb == "--help" || verb == "help") {
    std::cout << usage();
    return kExitDone;
  }
  if (verb == "--version") {
    std::cout << fmt::format("manyworlds {} (build {})\n", core::version(),
                             core::sharing::build_fingerprint().substr(0, 12));
    return kExitDone;
  }
  const commands::Command* command = find(verb);
  if (command == nullptr) return unknown_verb(verb);
  try {
    std::optional<Zygote> zygote;
    if (command->simulates) {
      block_drain_signal();
      zygote.emplace(std::move(kind));
    }
    const int code = command->run({{arguments.begin() + 1, arguments.end()}, zygote ? &*zygote : nullptr});
    std::cout.flush();
    if (!std::cout) throw core::IoError("write", "standard output");
    return code;
  } catch (const core::InputError& error) {
    print_message("manyworlds {}: {}\n", verb, error.what());
    if (const auto* listed = dynamic_cast<const experiments::ListedError*>(&error))
      for (const std::string& item : listed->items()) print_message("  {}\n", item);
    return kExitInput;
  } catch (const core::IoError& error) {
    print_message("manyworlds {}: {}\n", verb, error.what());
    return kExitIo;
  } catch (const std::exception& error) {
    print_message("manyworlds {}: internal error: {}\n", verb, error.what());
    return kExitInternal;
  }
}

}  // namespace manyworlds::farm
