// Names, paths and texts of files on their way out of the program, so that what reads them takes them for text alone: a
// terminal, a shell, a spreadsheet, HTML, Markdown. Text comes in as bytes, which may be no UTF-8.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace manyworlds::core {

/// What a terminal may be given: control characters, marks and overrides of the writing direction and line separators
/// of Unicode become "\u001b", bytes that are no UTF-8 "\xff". Line feeds, CR LF and tabs stay. JSON stays what it was,
/// as "\u001b" is its own escape of the same character.
std::string terminal_text(std::string_view text);

/// The same on one line: line feeds, carriage returns and tabs are escaped too.
std::string line_text(std::string_view text);

/// A word as a POSIX shell reads it back. One that terminal_text() or a line end would change is told as $'…', which
/// bash, zsh and ksh read: what is printed is printable and on one line.
std::string shell_quoted(std::string_view word);

/// Words as a command line.
std::string shell_line(const std::vector<std::string>& words);

/// A path as an argument that no program takes for an option: "./-rf" for "-rf".
std::string as_operand(const std::string& path);

/// A text as a field of comma-separated values (RFC 4180), with control characters as in terminal_text(). A spreadsheet
/// would compute what begins with =, +, -, @ or a tab and is no number: an apostrophe goes before it, and before what
/// already looks so guarded.
std::string csv_field(std::string_view text);

/// What csv_field() was given, of a field without its quotation marks: without the guarding apostrophe.
std::string_view csv_text(std::string_view field);

/// For HTML and SVG text and for attributes in double quotes; control characters, which XML forbids, as in
/// terminal_text().
std::string escape_html(std::string_view text);

/// For a line of Markdown or a cell of its tables: no character is markup, no address a link, and line ends are blanks.
std::string escape_markdown(std::string_view text);

}  // namespace manyworlds::core
