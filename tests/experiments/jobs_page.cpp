// docs/jobs.md shows what the code knows of each framework's jobs; MANYWORLDS_WRITE_DOCS writes it again.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "experiments/calculon/calculon.hpp"
#include "experiments/deepspeed/arguments.hpp"
#include "experiments/deepspeed/config_keys.hpp"
#include "experiments/frameworks/emit_targets.hpp"
#include "experiments/megatron/argument_table.hpp"
#include "experiments/nemo/settings.hpp"
#include "experiments/primus/primus.hpp"
#include "experiments/text/text.hpp"
#include "experiments/torchtitan/flavors.hpp"
#include "experiments/torchtitan/key_table.hpp"
#include "tests/source_folder.hpp"

using namespace manyworlds::experiments;
using namespace manyworlds::experiments::jobs;

namespace {

std::string flavors() {
  std::string text = "| model | flavors |\n|---|---|\n";
  for (const std::string& model : torchtitan::model_names()) {
    std::string names;
    for (const std::string& name : torchtitan::flavor_names(model))
      names += fmt::format("{}`{}`{}", names.empty() ? "" : " ", name,
                           torchtitan::find_flavor(model, name)->refused.empty() ? "" : " (refused)");
    text += fmt::format("| `{}` | {} |\n", model, names);
  }
  return text;
}

}  // namespace

TEST_CASE("the page of jobs has the tables that the code has") {
  const std::string path = manyworlds::source_folder() + "/docs/jobs.md";
  std::string page = import::read_text(path);
  const std::pair<const char*, std::string> tables[] = {
      {"arguments", megatron_arguments().markdown()},
      {"mlperf", mlperf_dialect().names.markdown()},
      {"nemo", nemo_dialect().names.markdown()},
      {"automodel", automodel_keys().markdown()},
      {"primus", primus_dialect().names.markdown()},
      {"torchtitan", torchtitan::known_keys().markdown()},
      {"flavors", flavors()},
      {"calculon", calculon::known_keys().markdown()},
      {"deepspeed", deepspeed::known_keys().markdown()},
      {"megatron-deepspeed", deepspeed::known_arguments().markdown()},
  };
  for (const auto& [name, expected] : tables) {
    INFO(name);
    const std::string begin = fmt::format("<!-- {} -->\n", name), end = fmt::format("<!-- /{} -->", name);
    REQUIRE(page.find(begin) != std::string::npos);
    const std::size_t from = page.find(begin) + begin.size();
    REQUIRE(page.find(end, from) != std::string::npos);
    if (std::getenv("MANYWORLDS_WRITE_DOCS") != nullptr) {
      page.replace(from, page.find(end) - from, expected);
      std::ofstream(path) << page;
    }
    CHECK(page.substr(from, page.find(end) - from) == expected);
  }
}

TEST_CASE("the page of jobs tells of every target of --emit") {
  const std::string page = import::read_text(manyworlds::source_folder() + "/docs/jobs.md");
  const std::size_t begin = page.find("| target |"), end = page.find("\n\n", begin);
  REQUIRE(begin != std::string::npos);
  for (const EmitTarget& target : emit_targets()) {
    INFO(target.name);
    CHECK(page.substr(begin, end - begin).find(fmt::format("`{}`", target.name)) != std::string::npos);
  }
}
