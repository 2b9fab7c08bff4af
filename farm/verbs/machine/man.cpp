// `manyworlds man [VERB]`: the manual pages, made from the help of the verbs.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "core/base/error.hpp"
#include "experiments/text/nearest.hpp"
#include "farm/cli/texts/manual_page.hpp"
#include "farm/system/exit_code.hpp"
#include "io/log/file.hpp"

namespace manyworlds::farm::commands {

namespace {

void write_page(const std::filesystem::path& path, const std::string& page) {
  io::AtomicFile file(path);
  file.append(page);
  file.commit();
}

void write_pages(const std::filesystem::path& folder, const std::vector<VerbTable>& verbs) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw core::IoError("make", folder.string(), error.value());
  write_page(folder / "manyworlds.1", program_page(verbs));
  for (const VerbTable& verb : verbs) write_page(folder / fmt::format("manyworlds-{}.1", verb.verb), verb_page(verb));
}

int run_man(const Invocation& invocation) {
  cxxopts::Options options("manyworlds man",
                           "The manual page of the program or of a verb: manyworlds man sweep | man -l -");
  options.add_options()("verb", "which verb; default: the program's page", cxxopts::value<std::string>())(
      "o,output", "the folder into which all pages are written", cxxopts::value<std::string>(), "DIR");
  options.parse_positional({"verb"});
  options.positional_help("[VERB]");
  const auto parsed = parse(options, invocation.arguments);
  if (!parsed) return kExitDone;
  const std::vector<VerbTable> verbs = verb_tables(registry());
  if (parsed->count("output") > 0) {
    if (parsed->count("verb") > 0) throw core::InputError("with -o all pages are written: leave VERB out");
    write_pages(required(*parsed, "output"), verbs);
    return kExitDone;
  }
  if (parsed->count("verb") == 0) {
    std::cout << program_page(verbs);
    return kExitDone;
  }
  const auto name = (*parsed)["verb"].as<std::string>();
  std::vector<std::string> names;
  for (const VerbTable& verb : verbs) {
    names.push_back(verb.verb);
    if (verb.verb != name) continue;
    std::cout << verb_page(verb);
    return kExitDone;
  }
  throw core::InputError(fmt::format("unknown verb '{}'{}", name, experiments::suggestion(name, names)));
}

}  // namespace

Command man_command() {
  return {.name = "man", .summary = "prints or writes the manual pages", .run = run_man};
}

}  // namespace manyworlds::farm::commands
