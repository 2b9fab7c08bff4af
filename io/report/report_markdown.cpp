// A report as Markdown for a merge request.
#include <fmt/format.h>

#include "core/base/escape.hpp"
#include "io/report/report.hpp"
#include "io/report/report_pictures.hpp"

namespace manyworlds::io {
namespace {

struct ToMarkdown {
  const Report& report;
  const std::string& prefix;
  MarkdownReport& to;

  void operator()(const Heading& heading) const {
    to.text += fmt::format("{} {}\n\n", std::string(static_cast<std::size_t>(heading.level), '#'),
                           core::escape_markdown(heading.text));
  }
  void operator()(const Paragraph& paragraph) const { to.text += core::escape_markdown(paragraph.text) + "\n\n"; }
  void operator()(const KeyValues& key_values) const {
    for (const auto& [value, what] : key_values.entries)
      to.text += fmt::format("- {}: **{}**\n", core::escape_markdown(what), core::escape_markdown(value));
    to.text += "\n";
  }
  void operator()(const TableBlock& lines) const {
    for (std::size_t i = 0; i < lines.lines.size(); ++i) {
      for (const std::string& cell : lines.lines[i]) to.text += fmt::format("| {} ", core::escape_markdown(cell));
      to.text += "|\n";
      if (i > 0) continue;
      for (const bool left_aligned : lines.left_aligned) to.text += left_aligned ? "|---" : "|---:";
      to.text += "|\n";
    }
    to.text += "\n";
  }
  void operator()(const Picture& picture) const {
    std::string name = prefix;
    for (const char c : picture.id)
      name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ? c : '-';
    name += ".svg";
    to.text += fmt::format("![{}]({})\n\n", core::escape_markdown(picture.title), name);
    to.pictures.emplace_back(name, draw_svg(report, picture));
  }
  void operator()(const AllExperiments&) const {
    to.text +=
        "`manyworlds export RUN --csv` has them as a table, `manyworlds report RUN` as a page to sort and filter.\n\n";
  }
  void operator()(const CodeBlock& code) const {
    const std::string text = core::terminal_text(code.text);
    // The fence must be longer than any in the text.
    std::string fence = "```";
    while (text.find(fence) != std::string::npos) fence += '`';
    to.text += fmt::format("{}:\n\n{}{}\n{}{}{}\n", core::escape_markdown(code.title), fence, code.language, text,
                           text.ends_with('\n') ? "" : "\n", fence);
  }
};

}  // namespace

MarkdownReport report_markdown(const Results& results, const TopOptions& options, const std::string& prefix,
                               const LaunchText& launch) {
  const Report report = make_report(results, options, launch);
  MarkdownReport result;
  result.text = fmt::format("# {}\n\n", core::escape_markdown(report.title));
  for (const Block& block : report.blocks) std::visit(ToMarkdown{report, prefix, result}, block);
  return result;
}

}  // namespace manyworlds::io
