// A run told to others: one page that needs nothing from elsewhere, or Markdown with pictures for a merge request.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/ranking/top.hpp"

namespace manyworlds::io {

/// HTML with everything in it: text, tables and the figures of all experiments, charts drawn by a script. Without
/// scripts the text and the tables remain. The same results make the same bytes. Throws as rank_experiments().
std::string report_page(const Results& results, const TopOptions& options);

struct MarkdownReport {
  std::string text;
  std::vector<std::pair<std::string, std::string>> pictures;  // file name and SVG, as the text refers to them
};
/// The same but for the table of all experiments; pictures are called `prefix` and a name.
MarkdownReport report_markdown(const Results& results, const TopOptions& options, const std::string& prefix);

}  // namespace manyworlds::io
