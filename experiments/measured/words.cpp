#include "experiments/measured/words.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "experiments/measured/tables.hpp"
#include "experiments/text/csv.hpp"

namespace manyworlds::experiments::measured {

std::string squeezed(std::string_view text) {
  std::string made;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') made.push_back(static_cast<char>(c - 'A' + 'a'));
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) made.push_back(c);
  }
  return made;
}

Words::Words() {
  for (const import::CsvRow& row : import::parse_csv(compiled_table("words"), "words.csv").rows)
    words_.push_back(
        {std::string(row.text("column")), std::string(row.text("contains")), std::string(row.text("value"))});
  for (const import::CsvRow& row : import::parse_csv(compiled_table("sources"), "sources.csv").rows) {
    Origin origin;
    for (std::string_view words = row.text("contains"); !words.empty();) {
      const std::size_t end = std::min(words.find('+'), words.size());
      origin.contains.emplace_back(words.substr(0, end));
      words.remove_prefix(std::min(end + 1, words.size()));
    }
    origin.from_year = row.integer("from_year").value_or(0);
    origin.family = row.text("family");
    origin.stack = row.text("stack");
    origin.zero = row.integer("zero").value_or(0);
    origin.sequence_parallel = row.integer("sequence_parallel") == 1;
    origin.overlap_grad_reduce = row.integer("overlap_grad_reduce") == 1;
    origin.sharded_by = row.text("sharded_by");
    origin.experts_over_replicas = row.text("experts_over") == "replicas";
    origin.recompute = row.text("recompute");
    origin.cluster = row.text("cluster");
    origins_.push_back(std::move(origin));
  }
  MANYWORLDS_CHECK(!origins_.empty() && origins_.back().contains.empty() && origins_.back().from_year == 0,
                   "the last row of sources.csv must fit every source");
}

std::optional<std::string> Words::meaning(std::string_view column, std::string_view text) const {
  const std::string said = squeezed(text);
  for (const Word& word : words_)
    if (word.column == column && said.find(word.contains) != std::string::npos) return word.value;
  return std::nullopt;
}

const Origin& Words::origin(const std::string& text, std::int64_t year) const {
  const std::string said = squeezed(text);
  const auto is_said = [&said](const std::string& word) { return said.find(word) != std::string::npos; };
  for (const Origin& origin : origins_)
    if (std::all_of(origin.contains.begin(), origin.contains.end(), is_said) && year >= origin.from_year) return origin;
  return origins_.back();
}

}  // namespace manyworlds::experiments::measured
