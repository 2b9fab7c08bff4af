// The file of stream programs: a JSON object per line (docs/programs.md).
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "experiments/programs/stream_program.hpp"

namespace manyworlds::experiments::programs {

/// Returns whether a text begins as such a file does.
bool is_program_file(std::string_view text);

/// Parses a file; `name` is its name in messages. Throws InputError with the line for what is no JSON, for a member
/// that is missing, unknown or of another type, for an operation that waits for itself or a later one, on a stream or a
/// dimension that was not declared, for an event that nobody recorded, for more memory freed than allocated, for lines
/// that lack, and for ranks and communicators that do not fit (core::workload::check_ranks).
StreamPrograms parse_program_file(std::string_view text, const std::string& name);

/// Returns the GPU that the first line of such a file names; empty if none. Throws InputError for what is no first
/// line.
std::string measured_gpu(std::string_view text, const std::string& name);

/// Returns the operation that a line of such a file describes, for a program of `programs`, with what it waits for left
/// out. Throws InputError, without a file, for a line that is no operation, and as parse_program_file() does.
StreamOp operation_of(const nlohmann::json& line, StreamPrograms& programs, const RankProgram& program);

/// Returns the text of the programs' file, which is parsed into the same programs; times are exact to a picosecond.
std::string program_file_text(const StreamPrograms& programs);

/// Writes that text to a stream, line by line, so that it is never whole in memory.
void write_program_file(std::ostream& file, const StreamPrograms& programs);

}  // namespace manyworlds::experiments::programs
