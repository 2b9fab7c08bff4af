// Escaping of names, paths and file contents for output, so that a terminal, a shell, a spreadsheet, an HTML or a
// Markdown reader treats them as plain text. The input is bytes, which need not be valid UTF-8.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::core {

/// Returns text that is safe to print on a terminal: control characters, bidirectional marks and overrides, and
/// Unicode line separators become escapes such as "\u001b"; bytes that are not valid UTF-8 become "\xff". Line feeds,
/// CR LF and tabs are kept. JSON keeps its meaning, because "\u001b" is its own escape of the same character.
std::string terminal_text(std::string_view text);

/// Returns the same on one line: line feeds, carriage returns and tabs are escaped too.
std::string line_text(std::string_view text);

/// Returns a word quoted so that a POSIX shell reads it back. A word with unprintable characters or line ends is
/// written as $'…', which bash, zsh and ksh understand, so that the result is printable and on one line.
std::string shell_quoted(std::string_view word);

/// Returns the words, quoted, as a command line.
std::string shell_line(const std::vector<std::string>& words);

/// Returns a path as an argument that no program takes for an option: "./-rf" for "-rf".
std::string as_operand(const std::string& path);

/// Returns a text as a field of comma-separated values (RFC 4180), with control characters escaped as by
/// terminal_text(). A spreadsheet would evaluate text that begins with =, +, -, @ or a tab and is not a number, so such
/// text gets a leading apostrophe; so does text that already has one before such a character.
std::string csv_field(std::string_view text);

/// The inverse of csv_field() for a field whose quotation marks were removed: returns it without the leading
/// apostrophe.
std::string_view csv_text(std::string_view field);

/// Returns the text escaped for HTML and SVG text and for attributes in double quotes. Control characters, which XML
/// forbids, are escaped as by terminal_text().
std::string escape_html(std::string_view text);

/// Returns the text escaped for a line of Markdown or a table cell: no character is markup, no address becomes a link,
/// and line ends become blanks.
std::string escape_markdown(std::string_view text);

}  // namespace manyworlds::core
