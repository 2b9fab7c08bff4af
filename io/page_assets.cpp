#include "io/page_assets.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace manyworlds::io {

std::string_view page_asset(std::string_view name) {
  if (name == "chart.js") return chart_library().front().text;
  for (const PageAsset& asset : page_files())
    if (asset.name == name) return asset.text;
  MANYWORLDS_CHECK(false, "no page asset '{}'", name);
}

std::string escape_html(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += c;
  }
  return safe;
}

std::string page_head(std::string_view title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
      "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; script-src 'unsafe-inline'; style-src "
      "'unsafe-inline'; img-src data:\">\n"
      "<link rel=icon href=\"data:,\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n",
      escape_html(title), page_asset("page.css"));
}

std::string page_scripts(const std::vector<std::string_view>& names) {
  std::string html =
      fmt::format("<script>\n{}\n</script>\n<script>\n{}</script>\n", page_asset("chart.js"), page_asset("page.js"));
  for (const std::string_view name : names) html += fmt::format("<script>\n{}</script>\n", page_asset(name));
  return html + fmt::format("<details class=quiet><summary>Licence of the charts</summary><pre>{}</pre></details>\n",
                            escape_html(page_asset("chart-licence.txt")));
}

}  // namespace manyworlds::io
