// Pricing and merging of the kernels between two communications.
#include "core/workload/pieces.hpp"

#include "core/compute/kernel.hpp"
#include "core/error.hpp"

namespace manyworlds::core::workload {
namespace {

class Merger {
 public:
  explicit Merger(const compute::Gpu& gpu) : gpu_(gpu) {}

  void add(const Pass& pass) {
    for (const Phase& phase : pass)
      for (const Work& work : phase.tape) add(work, phase.booking);
  }

  /// The part ends here: what follows is a new piece.
  void finish_part() {
    MANYWORLDS_CHECK(!pieces_.empty() && !join_, "a part ends in a collective or has no work");
    pieces_.back().finished_parts += 1;
    open_ = false;
  }

  std::vector<Piece> take() {
    MANYWORLDS_CHECK(!join_, "a pass ends in a collective that nothing waits for");
    return std::move(pieces_);
  }

 private:
  void add(const Work& work, Booking booking) {
    if (work.kind == Work::Kind::join) {
      join_ = true;
      open_ = false;
    } else if (work.kind == Work::Kind::start) {
      Piece piece;
      piece.kind = Piece::Kind::start;
      piece.joined = join_;
      piece.collective = work.collective;
      piece.bytes = work.bytes;
      piece.name = work.name;
      pieces_.push_back(piece);
      open_ = join_ = false;
    } else {
      if (!open_ || pieces_.back().booking != booking) {
        Piece piece;
        piece.joined = join_;
        piece.booking = booking;
        pieces_.push_back(piece);
        open_ = true;
        join_ = false;
      }
      pieces_.back().duration_ps += compute::cost(work.kernel, gpu_);
    }
  }

  const compute::Gpu& gpu_;
  std::vector<Piece> pieces_;
  bool open_ = false;  // the last piece takes more kernels
  bool join_ = false;  // the next piece needs the collectives so far
};

}  // namespace

std::vector<Piece> forward_pieces(const StageWork& work, const std::vector<Part>& chunk, const compute::Gpu& gpu) {
  Merger merger(gpu);
  for (const Part part : chunk) merger.add(work.of(part).forward);
  return merger.take();
}

std::vector<Piece> backward_pieces(const StageWork& work, const std::vector<Part>& chunk, const compute::Gpu& gpu,
                                   bool split) {
  Merger merger(gpu);
  for (auto part = chunk.rbegin(); part != chunk.rend(); ++part) {
    merger.add(work.of(*part).backward);
    if (split) merger.finish_part();
  }
  return merger.take();
}

}  // namespace manyworlds::core::workload
