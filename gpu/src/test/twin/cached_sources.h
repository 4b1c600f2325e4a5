#pragma once
// What the stress of the page cache has arrays over, with a model of what every byte must be, and a lock for each few of them.
#include "disk.h"

namespace twin {

// Some bytes of a page of a source. A thread that loads or stores them has the lock: application and model race with nobody, so that
// what ThreadSanitizer watches is the cache. Nobody waits for one.
class Stripe {
 public:
  bool share() {
    u32 is = word_.load(std::memory_order_relaxed);
    while (is != kOwned) {
      if (word_.compare_exchange_weak(is, is + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  bool own() {
    u32 nobody = 0;
    return word_.compare_exchange_strong(nobody, kOwned, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void end_share() { word_.fetch_sub(1, std::memory_order_release); }
  void end_own() { word_.store(0, std::memory_order_release); }

 private:
  static constexpr u32 kOwned = ~0u;
  std::atomic<u32> word_{0};
};

// A file, or all of a set, in pages of the cache.
class Source {
 public:
  // `members`: where the set is, in turns of 1 << unit_shift blocks.
  Source(std::vector<Disk*> disks, std::vector<SetMember> members, u32 block_shift, u32 unit_shift, u32 max_blocks, u64 size,
         std::vector<FileExtent> extents, bool writable)
      : writable(writable), size(size), disks_(std::move(disks)), members_(std::move(members)), extents_(std::move(extents)) {
    set_ = {};
    set_.blocks = ~0ull >> 20;
    set_.members = members_.data();
    set_.member_count = static_cast<u32>(members_.size());
    set_.inverse = members_.size() == 1 ? 0 : ~0ull / members_.size() + 1;
    set_.block_shift = block_shift;
    set_.unit_shift = unit_shift;
    set_.max_blocks = max_blocks;
    file_ = {size, extents_.data(), &set_, static_cast<u32>(extents_.size()), 0};
  }

  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Reads the model from the SSDs.
  void begin(u64 first_page, u32 page_shift, std::vector<std::vector<bool>>& taken) {
    first = first_page;
    stripe_shift_ = page_shift - 3;
    pages = (size + (1ull << page_shift) - 1) >> page_shift;
    model.resize(pages << page_shift);
    sums.resize(pages);
    stripes_ = std::vector<Stripe>(model.size() >> stripe_shift_);
    for (u64 at = 0; at < size; at += kGrain) {
      char* place = find(at, &taken);
      if (place != nullptr) {
        std::memcpy(&model[at], place, kGrain);
      }
    }
  }

  const std::vector<SetMember>& members() const { return members_; }
  PageSource described() { return {first, pages, &file_, tiered, 0, sums.data(), {}}; }

  // Whether the SSDs have what they should; else where not.
  bool is_written(u64 from, u64 bytes, u64& wrong) {
    u64 end = std::min(from + bytes, size);
    for (u64 at = from; at < end; at += kGrain) {
      const char* place = find(at, nullptr);
      if (place != nullptr && std::memcmp(place, &model[at], std::min<u64>(kGrain, end - at)) != 0) {
        wrong = at;
        return false;
      }
    }
    return true;
  }

  bool writable;
  bool tiered = false;  // whether its pages may be in the host tier
  const u64 size;
  u64 first = 0;  // page of the cache
  u64 pages = 0;
  std::vector<char> model;
  std::vector<u32> sums;  // as the cache has recorded them

  // The CRC-32C of what a page must be; 1 instead of 0.
  u32 sum(u64 page, u32 page_shift) const {
    u64 end = std::min((page + 1) << page_shift, size);
    u32 crc = ~0u;
    for (u64 at = page << page_shift; at < end; at++) {
      crc ^= static_cast<u8>(model[at]);
      for (u32 i = 0; i < 8; i++) {
        crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
      }
    }
    return crc == ~0u ? 1 : ~crc;
  }

 private:
  friend class Locked;

  // Where a grain is, by another calculation than the library's; null in a hole.
  char* find(u64 at, std::vector<std::vector<bool>>* taken) {
    const FileExtent* extent = &extents_[0];
    for (const FileExtent& e : extents_) {
      extent = e.offset <= at ? &e : extent;
    }
    if (extent->block == FileExtent::kHole) {
      return nullptr;
    }
    u64 byte = (extent->block << set_.block_shift) + (at - extent->offset);
    u64 unit_bytes = 1ull << (set_.unit_shift + set_.block_shift);
    u64 unit = byte / unit_bytes;
    const SetMember& member = members_[unit % members_.size()];
    Disk& disk = *disks_[member.ssd];
    u64 place = (member.slba << disk.block_shift()) + unit / members_.size() * unit_bytes + byte % unit_bytes;
    if (taken != nullptr) {
      (*taken)[member.ssd][place / kGrain] = true;
    }
    return disk.data() + place;
  }

  std::vector<Disk*> disks_;
  std::vector<SetMember> members_;
  std::vector<FileExtent> extents_;
  DeviceSet set_;
  DeviceFile file_;
  u32 stripe_shift_ = 0;
  std::vector<Stripe> stripes_;
};

// The locks of some bytes of a source, if nobody has one of them.
class Locked {
 public:
  Locked(Source& source, u64 from, u64 bytes, bool own) : source_(source), own_(own) {
    first_ = from >> source.stripe_shift_;
    u64 end = (from + bytes + (1ull << source.stripe_shift_) - 1) >> source.stripe_shift_;
    for (next_ = first_; next_ < end; next_++) {
      Stripe& stripe = source.stripes_[next_];
      if (!(own ? stripe.own() : stripe.share())) {
        return;
      }
    }
    got_ = true;
  }

  ~Locked() {
    for (u64 i = first_; i < next_; i++) {
      Stripe& stripe = source_.stripes_[i];
      own_ ? stripe.end_own() : stripe.end_share();
    }
  }

  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  explicit operator bool() const { return got_; }

 private:
  Source& source_;
  const bool own_;
  u64 first_;
  u64 next_;
  bool got_ = false;
};

}  // namespace twin
