#include "experiments/analysis/guesses.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/step/layout/memory_requirement.hpp"
#include "experiments/analysis/fit.hpp"
#include "experiments/config/config_schema.hpp"
#include "experiments/settings/settings.hpp"

namespace manyworlds::experiments {
namespace {

using core::OptionValue;

/// Whether the rate at `key` of a GPU is a guess. `gpus` are those of the catalog, one of which `name` may be.
bool is_guess(const OptionValue& value, const std::string& option, const std::string& name,
              const Catalog::Entries& gpus) {
  if (const auto entry = gpus.find(name); entry != gpus.end())
    if (const auto known = entry->second.values.find(option); known != entry->second.values.end())
      return known->second.certainty == "guess" && known->second.value == value;
  return value == find_option(catalog_section("gpus").options, option)->default_value;
}

/// Adds the guesses of one entry that the settings below `path` left as they are.
void add_guesses(std::vector<Guess>& to, const Settings& settings, const std::string& path, const std::string& kind,
                 const std::string& name, const Catalog& catalog) {
  const auto entry = catalog.entries(kind).find(name);
  if (entry == catalog.entries(kind).end()) return;
  for (const auto& [option, sourced] : entry->second.values) {
    if (sourced.certainty != "guess") continue;
    const auto set = settings.find(path + option);
    if (set != settings.end() && set->second == sourced.value)
      to.push_back({set->first, set->second, sourced.range, fmt::format("catalog/{}/{}.yaml", kind, name)});
  }
}

/// Adds the guesses among the library's constants. Those of another GPU's library are all guesses, named as one.
void add_library_guesses(std::vector<Guess>& to, const Settings& settings, const Catalog& catalog) {
  const std::string from_key = "cluster.gpu.library_from", from = settings.text(from_key);
  if (settings.text("collectives.protocol") != "calibrated") return;
  const std::string owner = from.empty() ? settings.text("cluster.gpu.name") : from;
  const std::string version = settings.text("collectives.version");
  for (const auto& [name, library] : catalog.entries("libraries")) {
    const auto has = [](const std::vector<std::string>& names, const std::string& one) {
      return std::find(names.begin(), names.end(), one) != names.end();
    };
    if (!has(library.gpus, owner) || (!version.empty() && !has(library.versions, version))) continue;
    if (from.empty())
      add_guesses(to, settings, "cluster.gpu.", "libraries", name, catalog);
    else
      to.push_back({from_key, from, {}, fmt::format("catalog/libraries/{}.yaml", name)});
  }
}

OptionValue like(const OptionValue& kind, double number) {
  if (std::holds_alternative<std::int64_t>(kind)) return static_cast<std::int64_t>(std::llround(number));
  return number;
}

/// What an experiment would be with other figures.
class Variant {
 public:
  Variant(const Settings& settings, const ExperimentConfig& config) : settings_(settings), inputs_(config.inputs) {}
  Variant with(const Guess& guess, double number) const {
    Variant result = *this;
    result.settings_[guess.key] = like(guess.value, number);
    return result;
  }
  double step_s() const { return fitting::closed_form_s(config_of(settings_, inputs_)); }
  bool fits() const {
    const auto memory = core::step::memory_requirement_of(config_of(settings_, inputs_).configuration);
    return memory.required.total() <= memory.memory_bytes();
  }

 private:
  Settings settings_;
  std::shared_ptr<const Inputs> inputs_;
};

/// Returns the range of a number; half and twice the value, within what its option allows, if it has none.
GuessedRange range_of(const Guess& guess) {
  if (guess.range) return *guess.range;
  const double number = *number_of(guess.value);
  const core::OptionInfo* option = find_key(guess.key, {}).option;
  return {std::max(number / 2, option->minimum), std::min(number * 2, option->maximum)};
}

/// The times of a step with one figure at the ends of its range, over the time with its value.
struct Worth {
  const Guess* guess = nullptr;
  double at_low = 1, at_high = 1;
  double span() const { return std::max({at_low, at_high, 1.0}) - std::min({at_low, at_high, 1.0}); }
};

Worth worth_of(const Guess& guess, const Variant& base, double base_s) {
  const GuessedRange range = range_of(guess);
  return {&guess, base.with(guess, range.low).step_s() / base_s, base.with(guess, range.high).step_s() / base_s};
}

/// A figure that is worth less is not named.
constexpr double kNamedWorth = 0.005;

/// Names the figures, that which is worth most first, and those that have no range; none if no range is worth anything.
std::string figures_text(std::vector<Worth> worths) {
  std::stable_sort(worths.begin(), worths.end(), [](const Worth& a, const Worth& b) { return a.span() > b.span(); });
  std::vector<std::string> ranged, others;
  for (const auto& [guess, at_low, at_high] : worths) {
    if (Worth{guess, at_low, at_high}.span() < kNamedWorth) continue;
    const std::string name = guess->key.substr(guess->key.rfind('.') + 1);
    (guess->range ? ranged : others).push_back(name + " " + figure_text(guess->value, guess->range));
  }
  if (ranged.empty()) return {};
  std::string text = fmt::format("{}", fmt::join(ranged, ", "));
  if (!others.empty()) text += fmt::format("; without a range: {}", fmt::join(others, ", "));
  return text;
}

}  // namespace

std::vector<Guess> guesses_of(const Settings& settings, const Catalog& catalog) {
  std::vector<Guess> result;
  std::vector<std::string> groups{"cluster."};
  for (const std::string group : kNodeGroups) groups.push_back("cluster." + group + ".");
  for (const std::string& group : groups) {
    const std::string gpu = group + "gpu.";
    add_guesses(result, settings, gpu, "gpus", settings.text(gpu + "name"), catalog);
  }
  add_library_guesses(result, settings, catalog);
  add_guesses(result, settings, "cluster.", "clusters", settings.text("cluster.name"), catalog);
  add_guesses(result, settings, "strategy.stack.", "stacks", settings.text("strategy.stack.name"), catalog);
  return result;
}

std::vector<Guess> guesses_in_use(const Settings& settings, const ExperimentConfig& config, const Catalog& catalog) {
  std::vector<Guess> result;
  const Variant base(settings, config);
  const double base_s = base.step_s();
  const bool fits = base.fits();
  const auto rests_on = [&](const Guess& guess) {
    if (guess.key.starts_with("cluster.gpu.library_from")) return config.cluster.gpus() > 1;
    if (!number_of(guess.value)) return true;
    const GuessedRange range = range_of(guess);
    return worth_of(guess, base, base_s).span() > 1e-9 || base.with(guess, range.low).fits() != fits ||
           base.with(guess, range.high).fits() != fits;
  };
  for (Guess& guess : guesses_of(settings, catalog))
    if (rests_on(guess)) result.push_back(std::move(guess));
  return result;
}

GuessedTime guessed_time(const Settings& settings, const ExperimentConfig& config, const Catalog& catalog) {
  const std::vector<Guess> guesses = guesses_of(settings, catalog);
  if (std::none_of(guesses.begin(), guesses.end(), [](const Guess& one) { return one.range.has_value(); })) return {};
  const Variant base(settings, config);
  const double base_s = base.step_s();
  Variant fast = base, slow = base;
  std::vector<Worth> worths;
  for (const Guess& guess : guesses) {
    if (!number_of(guess.value)) continue;
    worths.push_back(worth_of(guess, base, base_s));
    if (!guess.range) continue;
    const auto& [figure, at_low, at_high] = worths.back();
    if (std::min(at_low, at_high) < 1) fast = fast.with(guess, at_low < at_high ? guess.range->low : guess.range->high);
    if (std::max(at_low, at_high) > 1) slow = slow.with(guess, at_low > at_high ? guess.range->low : guess.range->high);
  }
  return {std::min(1.0, fast.step_s() / base_s), std::max(1.0, slow.step_s() / base_s), figures_text(worths)};
}

std::array<bool, core::compute::kKernelKinds> guessed_kinds(const Settings& settings, const Catalog& catalog) {
  std::array<bool, core::compute::kKernelKinds> guessed{};
  std::vector<std::string> paths{"cluster.gpu."};
  for (const std::string group : kNodeGroups) paths.push_back("cluster." + group + ".gpu.");
  for (const std::string& path : paths) {
    const auto named = settings.find(path + "name");
    const std::string name = named == settings.end() ? "" : std::get<std::string>(named->second);
    for (std::size_t kind = 0; kind < guessed.size(); ++kind) {
      const std::string option(core::compute::kRateOptions.at(kind));
      if (const auto value = settings.find(path + option); value != settings.end())
        guessed.at(kind) = guessed.at(kind) || is_guess(value->second, option, name, catalog.entries("gpus"));
    }
  }
  return guessed;
}

}  // namespace manyworlds::experiments
