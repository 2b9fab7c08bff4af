// One action on the operations of one program.
#pragma once

#include <vector>

#include "experiments/edits/edit.hpp"

namespace manyworlds::experiments::edits {

/// Does what `action` says with some operations of program `number`. Throws core::InputError, without a file, for what
/// cannot be done with one of them.
void make_edit(programs::StreamPrograms& programs, std::size_t number, const std::vector<std::uint32_t>& ops,
               const Action& action);

/// Returns the programs' collectives that are joined and cut; see Bucket.
programs::RankProgram in_buckets(const programs::StreamPrograms& programs, const programs::RankProgram& program,
                                 const std::vector<std::uint32_t>& ops, std::int64_t bytes);

/// Returns a program in which kernels that follow each other are one; see Fuse.
programs::RankProgram fused(const programs::StreamPrograms& programs, const programs::RankProgram& program,
                            const std::vector<std::uint32_t>& ops, const Fuse& how);

/// Returns a program whose operations `ops` begin no earlier than they did in the recording, by a thread of the host
/// that waits for each.
programs::RankProgram held(programs::StreamPrograms& programs, const programs::RankProgram& program,
                           const std::vector<std::uint32_t>& ops);

}  // namespace manyworlds::experiments::edits
