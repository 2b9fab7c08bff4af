// Merging of the kernels between two communications.
#include "core/workload/build/pieces.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/compute/host.hpp"

namespace manyworlds::core::workload {
namespace {

class Merger {
 public:
  Merger(const StageWork& work, const compute::Gpu& gpu) : work_(work), gpu_(gpu) {}

  /// A pass, and what it is longer because of its host.
  void add(const Pass& pass) {
    compute::HostWork host;
    Time busy_ps = 0;
    for (const Phase& phase : pass)
      for (const Work& work : phase.tape) {
        const Time cost_ps = add(work, phase.booking);
        if (!work_.by_host(work)) continue;
        host.kernels += work.kind == Work::Kind::kernel ? work.launches : 0;
        host.collectives += work.kind == Work::Kind::start ? 1 : 0;
        busy_ps += cost_ps;
      }
    if (const Time wait_ps = compute::host_wait(host, busy_ps, gpu_); wait_ps > 0) compute(Booking::host, wait_ps);
  }

  /// The part ends here: what follows is a new piece.
  void finish_part() {
    if (pieces_.empty()) compute(Booking::backward, 0);  // an embedding has no gradients of weights of its own
    pieces_.back().finished_parts += 1;
    open_ = false;
  }

  std::vector<Piece> take() {
    if (join_) compute(Booking::forward, 0);  // a chunk without layers may end in a collective, which has to end
    return std::move(pieces_);
  }

 private:
  /// The time of a kernel; 0 for communication.
  Time add(const Work& work, Booking booking) {
    if (work.kind == Work::Kind::join) {
      await(work.awaited);
      open_ = false;
    } else if (work.kind == Work::Kind::start) {
      Piece piece;
      piece.kind = Piece::Kind::start;
      piece.joined = join_;
      piece.awaited = awaited_;
      piece.collective = work.collective;
      piece.bytes = work.bytes;
      piece.split = work.split;
      piece.role = work.role;
      piece.name = work.name;
      pieces_.push_back(piece);
      open_ = join_ = false;
    } else {
      compute(booking, work.price.ps);
      return work.price.ps;
    }
    return 0;
  }

  /// Of two joins that follow each other one must wait for all that the other does.
  void await(const Awaited& awaited) {
    const bool wider = !join_ || !awaited.role;
    MANYWORLDS_CHECK(wider || !awaited_.role || awaited_.role == awaited.role, "a join for two roles");
    const std::int64_t but = join_ ? std::min(awaited.but, awaited_.but) : awaited.but;
    if (wider) awaited_ = awaited;
    awaited_.but = but;
    join_ = true;
  }

  void compute(Booking booking, Time duration_ps) {
    if (!open_ || pieces_.back().booking != booking) {
      Piece piece;
      piece.joined = join_;
      piece.awaited = awaited_;
      piece.booking = booking;
      pieces_.push_back(piece);
      open_ = true;
      join_ = false;
    }
    pieces_.back().duration_ps += duration_ps;
  }

  const StageWork& work_;
  const compute::Gpu& gpu_;
  std::vector<Piece> pieces_;
  bool open_ = false;  // the last piece takes more kernels
  bool join_ = false;  // the next piece needs collectives started so far
  Awaited awaited_;    // those
};

}  // namespace

std::vector<Piece> pieces_of(const StageWork& work, const std::vector<Part>& chunk, PassKind kind,
                             const compute::Gpu& gpu, bool split) {
  Merger merger(work, gpu);
  for (std::size_t place = 0; place < chunk.size(); ++place) {
    const Part part = chunk[kind == PassKind::forward ? place : chunk.size() - 1 - place];
    merger.add(work.of(part).pass(kind));
    if (split) merger.finish_part();
  }
  return merger.take();
}

}  // namespace manyworlds::core::workload
