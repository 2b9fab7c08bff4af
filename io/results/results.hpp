// What a run leaves: its tables in one HDF5 file. docs/formats.md has the layout. HDF5 is not told of threads: one at
// a time may be in here.
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "io/results/table.hpp"

namespace manyworlds::io {

inline constexpr std::int64_t kResultsFormatVersion = 1;

struct Attribute {
  std::string name;
  std::variant<std::int64_t, double, std::string> value;
};

struct Results {
  // The answer: it depends on the sweep and the build only.
  std::string spec;                     // the sweep, verbatim
  std::vector<std::string> axis_names;  // those columns of `experiments` that are axes, in spec order
  Table experiments;                    // one row an experiment, in spec order
  Table excluded;
  Table kernels, collectives, episodes;  // the sub-simulations
  // How it was computed.
  std::vector<Attribute> provenance;
};

/// The answer's tables with the names of their groups, in the order of the file.
std::array<std::pair<std::string, const Table*>, 5> answer_tables(const Results& results);
std::array<std::pair<std::string, Table*>, 5> answer_tables(Results& results);

/// A column of /experiments on which readers rely. Any other may be missing, as in runs of other versions.
struct RequiredColumn {
  std::string_view name;
  ElementType type;
};
std::span<const RequiredColumn> required_columns();

/// Begins the line of Results::spec behind the document that says what nobody gave.
inline constexpr std::string_view kAssumed = "# assumed: ";
/// The rest of that line; empty where nothing was assumed.
std::string assumed_of(const Results& results);
/// As it is told: a line, or nothing.
std::string told_assumed(const std::string& assumed);

/// The attribute of /provenance called `name` as a number; 0 where there is none.
double provenance_number(const Results& results, const std::string& name);

/// Puts the file in place whole or not at all. The same results make the same bytes (with the same zlib and HDF5).
/// Throws IoError.
void write_results(const std::filesystem::path& path, const Results& results);

/// Throws IoError for a file that cannot be read, InputError for one that is cut, damaged or not ours. HDF5 parses in a
/// process of its own: its seal has no secret, so anybody can make a file that HDF5 has not seen the like of.
Results read_results(const std::filesystem::path& path);

/// Of the library in use, "1.10.8".
std::string hdf5_version();

}  // namespace manyworlds::io
