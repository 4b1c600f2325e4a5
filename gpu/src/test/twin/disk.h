#pragma once
// SSDs for the stress of the page cache: arrays of bytes that commands really read and write.
#include <cstring>
#include <deque>

#include "responder.h"

namespace twin {

constexpr u32 kBusPage = 4096;
constexpr u32 kGrain = 512;  // what is told apart of memory and of SSDs

struct alignas(kBusPage) BusPage {
  char bytes[kBusPage];
};

// Memory that several SSDs may reach; a bus address is the address.
class BusMemory {
 public:
  explicit BusMemory(u64 pages) : pages_(pages), claimed_(pages * kBusPage / kGrain) {}

  char* data() { return pages_[0].bytes; }
  u64 size() const { return pages_.size() * kBusPage; }

  // Of a command that may move data from now on until release(). Orders nothing.
  bool claim(const char* at, u64 bytes) { return all(at, bytes, 1, 0); }
  void release(const char* at, u64 bytes) { all(at, bytes, 0, 1); }

  bool has(u64 address, u64 bytes) const {
    u64 at = address - reinterpret_cast<u64>(pages_[0].bytes);
    return at <= size() && bytes <= size() - at;
  }

 private:
  bool all(const char* at, u64 bytes, u8 to, u8 from) {
    u64 first = static_cast<u64>(at - data()) / kGrain;
    bool fine = true;
    for (u64 i = 0; i < (bytes + kGrain - 1) / kGrain; i++) {
      fine &= claimed_[first + i].exchange(to, std::memory_order_relaxed) == from;
    }
    return fine;
  }

  std::vector<BusPage> pages_;
  std::vector<std::atomic<u8>> claimed_;  // of each grain
};

// Copies without ThreadSanitizer: of memory that somebody may store to at this moment.
__attribute__((noinline, no_sanitize("thread"))) inline void copy_unwatched(char* to, const char* from, u64 bytes) {
  for (u64 i = 0; i < bytes; i += 8) {
    *reinterpret_cast<volatile u64*>(to + i) = *reinterpret_cast<const volatile u64*>(from + i);
  }
}

// One namespace. Data moves when its command arrives or when it ends, even long after the caller has given it up; that of commands
// that never end, too. The copies are plain on purpose: cache and queue put them in order with loads and stores of the frames.
class Disk : public Executor {
 public:
  // `watches_writes`: nobody may store to memory that a command is writing to the SSD.
  Disk(u32 nsid, u32 block_shift, u64 bytes, BusMemory& memory, bool watches_writes, u64 seed)
      : nsid_(nsid), block_shift_(block_shift), memory_(memory), watches_writes_(watches_writes), random_(seed), bytes_(bytes),
        written_(bytes / kGrain) {
    for (u64 i = 0; i < bytes; i += 8) {
      u64 word = random_();
      std::memcpy(&bytes_[i], &word, 8);
    }
  }

  char* data() { return bytes_.data(); }
  u64 size() const { return bytes_.size(); }
  u32 block_shift() const { return block_shift_; }

  // Writes of this byte fail, until healed.
  void spoil(u64 byte) { bad_ = byte; }
  void heal() { bad_ = ~0ull; }
  static constexpr Status kBad = 0x4280;  // Write Fault

  bool arrives(const Arrived& c, Status& s) override {
    settle(false);
    u64 length = static_cast<u64>(c.blocks) << block_shift_;
    if ((c.opcode != opcode::kRead && c.opcode != opcode::kWrite) || c.nsid != nsid_ || offset(c) > size() ||
        length > size() - offset(c) || !memory_.has(c.prp1, first(c)) ||
        (first(c) != length && (c.prp2 % kBusPage != 0 || length - first(c) > kBusPage || !memory_.has(c.prp2, length - first(c))))) {
      violation("a command outside of the SSD or the frames: opcode, SLBA", c.opcode, c.slba);
      return false;
    }
    if (!memory_.claim(pointer(c.prp1), first(c)) ||
        (first(c) != length && !memory_.claim(pointer(c.prp2), length - first(c)))) {
      violation("a frame for two commands that may move data: opcode, SLBA", c.opcode, c.slba);
    }
    for (u64 i = offset(c) / kGrain; i < (offset(c) + length) / kGrain; i++) {
      if (written_[i]) {
        violation("blocks that are being written are read or written: opcode, SLBA", c.opcode, c.slba);
      }
      written_[i] = written_[i] || c.opcode == opcode::kWrite;
    }
    if (c.opcode == opcode::kWrite && bad_ - offset(c) < length) {
      s = kBad;
    }
    if (early(c)) {
      move(c, s);
    }
    return true;
  }

  void ends(const Arrived& c, Status s) override {
    if (!early(c)) {
      move(c, s);
    }
    u64 length = static_cast<u64>(c.blocks) << block_shift_;
    memory_.release(pointer(c.prp1), first(c));
    if (first(c) != length) {
      memory_.release(pointer(c.prp2), length - first(c));
    }
    if (c.opcode == opcode::kWrite) {
      std::fill_n(written_.begin() + static_cast<long>(offset(c) / kGrain), length / kGrain, false);
    }
  }

  // Nobody is told, but its data may move at any time.
  void is_lost(const Arrived& c, Status s) override {
    if (!early(c)) {
      lost_.push_back({nanos() + random_() % 200000000, c, s});
    }
  }

  // All that is due, or really all, of lost commands moves.
  void settle(bool all) {
    while (!lost_.empty() && (all || lost_.front().due <= nanos())) {
      move(lost_.front().command, lost_.front().status);
      lost_.pop_front();
    }
  }

 private:
  struct Lost {
    u64 due;
    Arrived command;
    Status status;
  };

  static char* pointer(u64 bus) { return reinterpret_cast<char*>(bus); }
  static bool early(const Arrived& c) { return ((c.cid * 7 + c.slba) & 3) == 0; }
  u64 offset(const Arrived& c) const { return c.slba << block_shift_; }

  // Bytes at PRP 1.
  u64 first(const Arrived& c) const {
    return std::min(static_cast<u64>(c.blocks) << block_shift_, kBusPage - c.prp1 % kBusPage);
  }

  // One that fails leaves anything in memory, or a part on the SSD.
  void move(const Arrived& c, Status s) {
    u64 length = static_cast<u64>(c.blocks) << block_shift_;
    char* at = bytes_.data() + offset(c);
    part(c, s, at, pointer(c.prp1), first(c));
    if (first(c) != length) {
      part(c, s, at + first(c), pointer(c.prp2), length - first(c));
    }
  }

  void part(const Arrived& c, Status s, char* at, char* memory, u64 bytes) {
    if (c.opcode == opcode::kRead) {
      if (failed(s)) {
        std::memset(memory, 0xEE, bytes);
      } else {
        std::memcpy(memory, at, bytes);
      }
      return;
    }
    bytes = failed(s) ? bytes / 2 : bytes;
    if (watches_writes_) {
      std::memcpy(at, memory, bytes);
    } else {
      copy_unwatched(at, memory, bytes);
    }
  }

  const u32 nsid_;
  const u32 block_shift_;
  BusMemory& memory_;
  const bool watches_writes_;
  std::mt19937_64 random_;
  std::vector<char> bytes_;
  std::vector<bool> written_;  // grains for which a write has not ended
  std::deque<Lost> lost_;
  std::atomic<u64> bad_{~0ull};
};

}  // namespace twin
