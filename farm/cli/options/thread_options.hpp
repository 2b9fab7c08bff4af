// The option --threads: of verbs that simulate in this process, and of those that run a sweep.
#pragma once

#include <cstddef>
#include <cxxopts.hpp>
#include <optional>

namespace manyworlds::farm::commands {

void add_thread_options(cxxopts::Options& options);
/// Returns how many threads simulate: --threads, else the CPUs at hand. Throws core::InputError if it is not from 1 to
/// 1,024.
std::size_t threads_of(const cxxopts::ParseResult& parsed);
/// Returns --threads, else nullopt. Throws likewise.
std::optional<int> given_threads(const cxxopts::ParseResult& parsed);

}  // namespace manyworlds::farm::commands
