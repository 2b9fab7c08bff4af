#include "experiments/measured/term_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "experiments/measured/tables.hpp"

namespace manyworlds::experiments::measured {

std::string normalized_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') result.push_back(static_cast<char>(c - 'A' + 'a'));
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) result.push_back(c);
  }
  return result;
}

void reject_renamed_columns(const import::CsvRow& row) {
  constexpr std::pair<const char*, const char*> kRenamed[] = {{"fit", "included"},
                                                              {"apart_because", "exclusion_reason"}};
  for (const auto& [before, now] : kRenamed)
    if (row.header().has(before)) row.fail(fmt::format("column '{}' is '{}' now", before, now));
}

TermTable::TermTable() {
  for (const import::CsvRow& row : import::parse_csv(compiled_table("words"), "words.csv").rows)
    terms_.push_back(
        {std::string(row.text("column")), std::string(row.text("contains")), std::string(row.text("value"))});
  for (const import::CsvRow& row : import::parse_csv(compiled_table("sources"), "sources.csv").rows) {
    SourceProfile profile;
    for (std::string_view words = row.text("contains"); !words.empty();) {
      const std::size_t end = std::min(words.find('+'), words.size());
      profile.contains.emplace_back(words.substr(0, end));
      words.remove_prefix(std::min(end + 1, words.size()));
    }
    profile.from_year = row.integer("from_year").value_or(0);
    profile.family = row.text("family");
    profile.stack = row.text("stack");
    profile.zero = row.integer("zero").value_or(0);
    profile.sequence_parallel = row.integer("sequence_parallel") == 1;
    profile.overlap_grad_reduce = row.integer("overlap_grad_reduce") == 1;
    profile.sharded_by = row.text("sharded_by");
    profile.experts_over_replicas = row.text("experts_over") == "replicas";
    profile.recompute = row.text("recompute");
    profile.cluster = row.text("cluster");
    profiles_.push_back(std::move(profile));
  }
  MANYWORLDS_CHECK(!profiles_.empty() && profiles_.back().contains.empty() && profiles_.back().from_year == 0,
                   "the last row of sources.csv must fit every source");
}

std::optional<std::string> TermTable::meaning(std::string_view column, std::string_view text) const {
  const std::string normalized = normalized_text(text);
  for (const Term& word : terms_)
    if (word.column == column && normalized.find(word.contains) != std::string::npos) return word.value;
  return std::nullopt;
}

const SourceProfile& TermTable::profile(const std::string& text, std::int64_t year) const {
  const std::string normalized = normalized_text(text);
  const auto occurs = [&normalized](const std::string& word) { return normalized.find(word) != std::string::npos; };
  for (const SourceProfile& profile : profiles_)
    if (std::all_of(profile.contains.begin(), profile.contains.end(), occurs) && year >= profile.from_year)
      return profile;
  return profiles_.back();
}

}  // namespace manyworlds::experiments::measured
