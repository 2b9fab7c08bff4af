// The report of a run for other people: a self-contained HTML page, or Markdown with pictures for a merge request.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/ranking/top.hpp"

namespace manyworlds::io {

/// What launches the best experiment, for a report.
struct LaunchText {
  std::string command;  // that prints `text`: "manyworlds top runs/a --emit megatron"
  std::string text;     // the file; "" if the command has to be given first
};

/// Returns a self-contained page: text, tables, the values of all experiments, and charts drawn by a script. Without
/// scripts the text and the tables remain. Equal results give equal bytes. Throws like rank_experiments().
std::string report_page(const Results& results, const TopOptions& options, const LaunchText& launch = {});

struct MarkdownReport {
  std::string text;
  std::vector<std::pair<std::string, std::string>> pictures;  // file name and SVG; the text refers to these names
};
/// Returns the same report without the table of all experiments; the file names of the pictures begin with `prefix`.
MarkdownReport report_markdown(const Results& results, const TopOptions& options, const std::string& prefix,
                               const LaunchText& launch = {});

}  // namespace manyworlds::io
