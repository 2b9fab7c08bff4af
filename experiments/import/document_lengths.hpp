// CSV tables of the lengths of a corpus' documents; docs/formats.md describes the columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace manyworlds::experiments::import {

inline constexpr std::int64_t kMinMeanTokens = 16;  // of a document, on average

/// Distinct lengths in tokens, ascending, and how many documents have each.
using DocumentLengths = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Parses a table; `name` is the file name in messages. Throws InputError with the line for an unknown column, a number
/// that is missing or out of range, a length that is counted twice, and with the file for a table without documents or
/// of documents that have fewer than kMinMeanTokens on average.
DocumentLengths parse_document_lengths(std::string_view text, const std::string& name);

}  // namespace manyworlds::experiments::import
