// Reads the arguments of Megatron-LM that are one setting each, and refuses those that are not modelled.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "experiments/megatron/reader.hpp"
#include "experiments/shell/arithmetic.hpp"
#include "experiments/text/text.hpp"

namespace manyworlds::experiments::jobs {
namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 40;

/// Returns a value; DATA_PATH of --data-path if nobody knows it.
std::string value_or_name(const Text& value, std::string name) {
  if (shell::is_known(value.text)) return value.text;
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace

MegatronReader::MegatronReader(const JobArguments& arguments, const JobOptions& options, const Catalog& catalog)
    : arguments_(arguments), options_(options), catalog_(catalog) {
  for (const Argument& one : arguments.arguments) given_[one.name] = &one;  // the last one counts, as in argparse
  job_.kind = arguments.kind;
  job_.notes = arguments.notes;
}

Job MegatronReader::read() {
  check_arguments();
  experts_ = count("num-experts", 0) > 0;
  latent_ = given("multi-latent-attention");
  layers_ = count("num-layers", 0), heads_ = count("num-attention-heads", 0);
  read_software();
  read_gpus();
  read_direct();
  read_layout();
  read_model();
  read_stack();
  read_carried();
  return std::move(job_);
}

const Argument* MegatronReader::find(const std::string& name) const {
  const auto found = given_.find(name);
  return found == given_.end() ? nullptr : found->second;
}

const Argument* MegatronReader::first_of(const std::vector<std::string>& names) const {
  for (const std::string& name : names)
    if (const Argument* one = find(name)) return one;
  return nullptr;
}

const Place& MegatronReader::place(const std::string& name) const {
  const Argument* one = find(name);
  return one == nullptr ? nowhere_ : one->place;
}

void MegatronReader::fail(const std::string& name, const std::string& what) const {
  fail_at(place(name), fmt::format("--{}{}", name, what));
}

std::string MegatronReader::text(const std::string& name, const std::string& otherwise) const {
  const Argument* one = find(name);
  return one == nullptr ? otherwise : first_value(*one, otherwise);
}

std::int64_t MegatronReader::count(const std::string& name, std::int64_t otherwise) const {
  if (!given(name)) return otherwise;
  const std::string value = text(name);
  const auto number = shell::integer_of(value);
  if (!number || *number < 0 || *number > kMaxCount) fail(name, fmt::format(" needs a whole number, not '{}'", value));
  return *number;
}

std::vector<std::string> MegatronReader::words(const std::string& name) const {
  std::vector<std::string> result;
  const Argument* one = find(name);
  if (one == nullptr) return result;
  for (const Text& value : one->values) {
    if (!shell::is_known(value.text)) fail(name, " follows from " + shell::why_unknown(value.text));
    std::string plain = value.text;
    std::replace_if(
        plain.begin(), plain.end(), [](char c) { return c == '[' || c == ']' || c == ',' || c == '\'' || c == '"'; },
        ' ');
    for (const std::string_view word : import::words_of(plain)) result.emplace_back(word);
  }
  return result;
}

void MegatronReader::set(const std::string& key, const std::string& value, const std::string& because) {
  job_.settings.push_back({key, value, place(because)});
}

void MegatronReader::set(const std::string& key, std::int64_t value, const std::string& because) {
  set(key, std::to_string(value), because);
}

/// Counts arguments by their fate, and refuses those that are not modelled unless their value changes nothing.
void MegatronReader::check_arguments() {
  std::vector<std::string> noted;
  const Argument* first = nullptr;  // of those that are refused
  for (const auto& [name, argument] : given_) {
    const KnownName& known = *find_argument(name);
    job_.mapped += known.fate == Fate::mapped ? 1 : 0;
    // What is emitted has a tokenizer without a file.
    if (known.fate == Fate::irrelevant || name == "tokenizer-type") {
      job_.irrelevant += known.fate == Fate::irrelevant ? 1 : 0;
      std::string words = "--" + name;
      for (const Text& value : argument->values) words += " " + value_or_name(value, name);
      job_.beside_the_step.push_back(std::move(words));
    }
    if (known.fate == Fate::carried) carry(*argument);
    if (known.fate == Fate::noted) noted.push_back(fmt::format("--{} ({})", name, known.why));
    if (known.fate != Fate::refused) continue;
    const std::string value = argument->values.empty() ? "" : argument->values.front().text;
    if (known.is_harmless(value)) continue;
    if (first == nullptr || argument->place.line < first->place.line) first = argument;
  }
  if (first != nullptr) {
    const std::string value = first->values.empty() ? "" : " " + shell::shown(first->values.front().text);
    fail(first->name, fmt::format("{}: {}", value, find_argument(first->name)->why));
  }
  if (!noted.empty()) note(fmt::format("not modelled: {}", fmt::join(noted, ", ")));
}

/// Keeps what is the model's own for what is emitted; a value that nobody knows is left to the user.
void MegatronReader::carry(const Argument& argument) {
  ++job_.irrelevant;
  models::CarriedArgument one{argument.name, {}};
  if (one.name == "layernorm-epsilon") one.name = "norm-epsilon";
  bool known = true;
  std::string words = "--" + argument.name;
  for (const Text& value : argument.values) {
    known = known && models::is_carried_value(value.text);
    one.values.push_back(value.text);
    words += " " + value_or_name(value, argument.name);
  }
  if (known)
    carried_.push_back(std::move(one));
  else
    job_.beside_the_step.push_back(std::move(words));
}

/// Arguments whose settings say less than they do.
void MegatronReader::read_carried() {
  for (const char* name : {"squared-relu", "quick-geglu", "openai-gelu"})
    if (given(name)) carried_.push_back({name, {}});
  if (text("position-embedding-type") == "yarn") carried_.push_back({"position-embedding-type", {"yarn"}});
  if (const std::string multiple = text("make-vocab-size-divisible-by", "128"); multiple != "128")
    carried_.push_back({"make-vocab-size-divisible-by", {multiple}});
  if (!carried_.empty()) job_.settings.push_back({models::kCarriedKey, models::carried_text(carried_), {}});
}

void MegatronReader::read_direct() {
  for (const KnownName& known : megatron_arguments().all()) {
    if (known.fate != Fate::mapped || known.values == "*") continue;
    if (is_of_experts(known) && !experts_) continue;
    if (legacy_ && known.means.starts_with("strategy.stack.") && !given(known.name)) continue;
    if (!given(known.name)) {
      if (!known.absent.empty()) set(known.means, known.absent);
      continue;
    }
    if (known.takes == Takes::nothing) {
      set(known.means, known.values, known.name);
      continue;
    }
    const std::string value = text(known.name);
    const std::string word = known.values.empty() ? value : translated(known.values, value);
    if (word.empty()) fail(known.name, fmt::format(" {} is not modelled; known are {}", value, known.values));
    set(known.means, word, known.name);
  }
}

}  // namespace manyworlds::experiments::jobs
