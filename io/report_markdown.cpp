// The report as Markdown that a merge request shows.
#include <fmt/format.h>

#include "io/report.hpp"
#include "io/report_pictures.hpp"

namespace manyworlds::io {
namespace {

/// Nothing in it is markup, also not in a cell of a table.
std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\n') {
      safe += ' ';
      continue;
    }
    if (c == '<') {
      safe += "&lt;";
      continue;
    }
    if (std::string_view("\\`*_[]|#").find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return safe;
}

struct ToMarkdown {
  const Report& report;
  const std::string& prefix;
  MarkdownReport& to;

  void operator()(const Heading& heading) const {
    to.text +=
        fmt::format("{} {}\n\n", std::string(static_cast<std::size_t>(heading.level), '#'), escaped(heading.text));
  }
  void operator()(const Words& words) const { to.text += escaped(words.text) + "\n\n"; }
  void operator()(const Tiles& tiles) const {
    for (const auto& [value, what] : tiles.figures)
      to.text += fmt::format("- {}: **{}**\n", escaped(what), escaped(value));
    to.text += "\n";
  }
  void operator()(const Lines& lines) const {
    for (std::size_t i = 0; i < lines.lines.size(); ++i) {
      for (const std::string& cell : lines.lines[i]) to.text += fmt::format("| {} ", escaped(cell));
      to.text += "|\n";
      if (i > 0) continue;
      for (const bool left : lines.left) to.text += left ? "|---" : "|---:";
      to.text += "|\n";
    }
    to.text += "\n";
  }
  void operator()(const Picture& picture) const {
    std::string name = prefix;
    for (const char c : picture.id)
      name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ? c : '-';
    name += ".svg";
    to.text += fmt::format("![{}]({})\n\n", escaped(picture.title), name);
    to.pictures.emplace_back(name, draw_svg(report, picture));
  }
  void operator()(const Everything&) const {
    to.text +=
        "`manyworlds export RUN --csv` has them as a table, `manyworlds report RUN` as a page to sort and filter.\n\n";
  }
  void operator()(const Code& code) const {
    // A fence longer than any in the text.
    std::string fence = "```";
    while (code.text.find(fence) != std::string::npos) fence += '`';
    to.text += fmt::format("{}:\n\n{}yaml\n{}{}{}\n", escaped(code.title), fence, code.text,
                           code.text.ends_with('\n') ? "" : "\n", fence);
  }
};

}  // namespace

MarkdownReport report_markdown(const Results& results, const TopOptions& options, const std::string& prefix) {
  const Report report = make_report(results, options);
  MarkdownReport made;
  made.text = fmt::format("# {}\n\n", escaped(report.title));
  for (const Block& block : report.blocks) std::visit(ToMarkdown{report, prefix, made}, block);
  return made;
}

}  // namespace manyworlds::io
