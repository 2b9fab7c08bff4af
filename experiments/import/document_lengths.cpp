// Parses tables of documents' lengths: one row for each length and its count, or one for each document.
#include "experiments/import/document_lengths.hpp"

#include <algorithm>
#include <map>

#include "experiments/text/csv.hpp"
#include "experiments/text/nearest.hpp"

namespace manyworlds::experiments::import {
namespace {

constexpr std::int64_t kMaxTokens = std::int64_t{1} << 40, kMaxDocuments = std::int64_t{1} << 40;

/// Returns whether the table counts documents, instead of having a row for each.
bool check_columns(const CsvHeader& header) {
  const std::vector<std::string> known{"tokens", "documents"};
  for (const std::string& name : header.names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw core::InputError(fmt::format("unknown column '{}'{}", name, suggestion(name, known)), header.file, 1);
  if (!header.has("tokens"))
    throw core::InputError("column 'tokens', the length of a document, is missing", header.file, 1);
  return header.has("documents");
}

std::int64_t number(const CsvRow& row, const char* column, std::int64_t least, std::int64_t most) {
  const auto given = row.integer(column);
  if (!given) row.fail(fmt::format("{} is missing", column));
  if (*given < least || *given > most)
    row.fail(fmt::format("{} must be from {} to {}, not {}", column, least, most, *given));
  return *given;
}

}  // namespace

DocumentLengths parse_document_lengths(std::string_view text, const std::string& name) {
  const CsvTable table = parse_csv(text, name);
  const bool counted = check_columns(*table.header);
  struct Counted {
    std::int64_t documents = 0;
    int line = 0;
  };
  std::map<std::int64_t, Counted> by_length;
  for (const CsvRow& row : table.rows) {
    const std::int64_t tokens = number(row, "tokens", 1, kMaxTokens);
    const std::int64_t documents = counted ? number(row, "documents", 0, kMaxDocuments) : 1;
    const auto [known, is_new] = by_length.try_emplace(tokens, Counted{0, row.line()});
    if (!is_new && counted)
      row.fail(fmt::format("documents of {} tokens are counted in line {} already", tokens, known->second.line));
    known->second.documents += documents;
  }
  DocumentLengths lengths;
  double tokens = 0, documents = 0;
  for (const auto& [length, one] : by_length) {
    if (one.documents == 0) continue;
    lengths.emplace_back(length, one.documents);
    tokens += static_cast<double>(length) * static_cast<double>(one.documents);
    documents += static_cast<double>(one.documents);
  }
  if (lengths.empty()) throw core::InputError("the table has no document", name, 1);
  if (tokens < static_cast<double>(kMinMeanTokens) * documents)
    throw core::InputError(fmt::format("documents have {:.1f} tokens on average, and should have {} at least",
                                       tokens / documents, kMinMeanTokens),
                           name, 1);
  return lengths;
}

}  // namespace manyworlds::experiments::import
