#include "farm/cli/options/emit_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/escape.hpp"

namespace manyworlds::farm::commands {

void add_emit_options(cxxopts::Options& options, const std::string& whose) {
  std::vector<std::string> names;
  for (const auto& target : experiments::jobs::emit_targets()) names.push_back(target.name);
  options.add_options()(
      "emit",
      fmt::format("as launch flags behind the answer: {}, for {} (docs/jobs.md)", whose, fmt::join(names, ", ")),
      cxxopts::value<std::string>(),
      "TARGET")("emit-to", "with --emit: into a file instead", cxxopts::value<std::string>(), "FILE");
}

EmitOptions::EmitOptions(const cxxopts::ParseResult& parsed) {
  if (parsed.count("emit") == 0) {
    if (parsed.count("emit-to") > 0) throw core::InputError("belongs to --emit TARGET", "--emit-to");
    return;
  }
  target_ = &experiments::jobs::emit_target(required(parsed, "emit"));
  if (parsed.count("emit-to") > 0)
    file_.emplace(required(parsed, "emit-to"));
  else if (parsed.count("json") > 0)
    throw core::InputError("is no JSON; give --emit-to FILE", "--emit");
}

void EmitOptions::check_some(const experiments::Sweep& sweep, const experiments::jobs::Job* like,
                             const experiments::Catalog& catalog) const {
  constexpr std::size_t kTried = 64;  // spread over the sweep
  if (!any()) return;
  const std::size_t count = sweep.experiments.size(), step = std::max<std::size_t>(count / kTried, 1);
  std::optional<core::InputError> refusal;
  for (std::size_t i = 0; i < count; i += step) {
    try {
      emit_job(*target_, sweep.experiments[i].settings, like, catalog);
      return;
    } catch (const core::InputError& error) {
      if (refusal && std::string_view(refusal->what()) != error.what()) return;  // one of them may be the winner's
      refusal = error;
    }
  }
  if (refusal)
    throw core::InputError(fmt::format("no layout can be given as {}: {}", target_->name, refusal->what()), "--emit");
}

void EmitOptions::emit(const experiments::Settings& experiment, const experiments::jobs::Job* like,
                       const experiments::Catalog& catalog) {
  if (any()) emitted_ = emit_job(*target_, experiment, like, catalog);
}

experiments::jobs::OwnEmission EmitOptions::emitted() const {
  if (!emitted_) return std::nullopt;
  return std::pair{target_, *emitted_};
}

void EmitOptions::write(const std::vector<std::string>& title) {
  if (!emitted_) return;
  const std::string text = file_text(*emitted_, title);
  if (!file_) {
    std::cout << "\n" << text;
    return;
  }
  file_->append(text);
  file_->commit();
}

io::LaunchText launch_text(const std::filesystem::path& run, const experiments::jobs::OwnEmission& emitted,
                           const std::string& like, const std::vector<std::string>& title) {
  if (!emitted) return {};
  return {fmt::format("manyworlds top {} --emit {}{}", core::shell_quoted(run.string()), emitted->first->name, like),
          file_text(emitted->second, title)};
}

}  // namespace manyworlds::farm::commands
