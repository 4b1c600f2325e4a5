#pragma once
// Arrays on an SSD, larger than GPU memory, whose elements kernels read and write by their number.
//
//   extern "C" __global__ void sum(const DeviceArray* array, u64* total) {
//     Array<float> a(array);
//     ...
//     float v = a[i];                      // any thread, any element
//     Span<float> row = a.pin(i, 100);     // elements that stay where they are as long as `row` lives
//     a.store(i, v);
//   }
#include "cache.cuh"

namespace gpunvme {

// What the host hands to kernels: PageCache.array, DeviceArray.deviceAddress.
struct alignas(64) DeviceArray {
  PageCache* cache;
  u64 first;    // the page of the cache in which it begins
  u64 offset;   // bytes of that page before it
  u64 bytes;
  u32 writable;
  u32 element_bytes;  // a power of two, at most a page
  u64 reserved0[3];
};
static_assert(sizeof(DeviceArray) == 64, "layout shared with the host");

template <class T, bool kHelps>
class Span;

// An array as a thread uses it. T is copied as plain bytes. Any threads may call at any time. Lanes of a warp that want the same page
// share one look at it, and all pages that they miss are read at once. A call that fails returns T{} or an empty span, and status() says why from then on.
//
// kHelps: threads that wait for the SSD serve the queues, too. For ServedArray warps that do nothing else do (server.cuh).
template <class T, bool kHelps = true>
class Array {
 public:
  // `storage`: a kernel's own handle (KernelHandle), else null.
  GPUNVME_FN explicit Array(const DeviceArray* array, const Storage* storage = nullptr)
      : a_(*array), storage_(storage), pages_(array->cache, storage) {}

  // Elements; none if the host made the array for elements of another size.
  GPUNVME_FN u64 size() const { return a_.element_bytes == sizeof(T) ? a_.bytes / sizeof(T) : 0; }

  // The first failure of this thread's calls, or kSuccess.
  GPUNVME_FN Status status() const { return status_; }

  GPUNVME_FN T operator[](u64 i) {
    T value{};
    get(i, value);
    return value;
  }

  // Reads one element.
  GPUNVME_FN Status get(u64 i, T& value) {
    if (i >= size()) {
      return note(status::kArgument);
    }
    u64 at = a_.offset + i * sizeof(T);
    u32 active = warp::active();
    u32 group;
    u32 f;
    bool hit;
    if constexpr (sizeof(T) <= 16) {
      hit = pages_.template touch<false>(page(at), active, group, f);
      u32 used = 0;
      if (hit) {
        value = mem::load_value(element(f, at));
        memcpy(&used, &value, sizeof(T) < sizeof(used) ? sizeof(T) : sizeof(used));
      }
      pages_.release_used(active, group, hit, f, used);
    } else {
      hit = pages_.template touch<true>(page(at), active, group, f);
      if (hit) {
        value = *element(f, at);
      }
      // The other lanes' loads come before the leader's release.
      warp::sync(active);
      if (hit && warp::lane() == warp::lowest(group)) {
        pages_.release(f, warp::popcount(group));
      }
    }
    if (hit) {
      return status::kSuccess;
    }
    Missed missed = get_missed(&a_, storage_, at);
    value = missed.value;
    return note(missed.status);
  }

  // Stores one element. The SSD has it once its page made room for another, or was cleaned.
  GPUNVME_FN Status store(u64 i, const T& value) {
    if (i >= size() || a_.writable == 0) {
      return note(status::kArgument);
    }
    u64 at = a_.offset + i * sizeof(T);
    u32 active = warp::active();
    u32 group;
    u32 f;
    bool hit = pages_.template touch<false>(page(at), active, group, f);
    if (hit) {
      *element(f, at) = value;
    }
    // The other lanes' stores come before the leader's mark.
    warp::sync(active);
    if (hit && warp::lane() == warp::lowest(group)) {
      pages_.release_dirty(f, warp::popcount(group));
    }
    return hit ? static_cast<Status>(status::kSuccess) : note(store_missed(&a_, storage_, at, value));
  }

  // Elements from i on that stay in their place while the span lives: at most n, and not beyond the page. A pinned page takes one
  // of the 16 frames in which it can be. So hold few, and briefly: a page for which no frame can be had ends in kBusy after a
  // while. All that threads hold at once, those of one warp too, should be a small part of the cache.
  GPUNVME_FN Span<T, kHelps> pin(u64 i, u64 n) { return pin(i, n, false); }

  // The same of a whole page whose contents need not be read: the caller stores all of the span's elements before it ends. Until
  // then nobody else gets the page, if it was not there and has nothing behind the array's end. kArgument if i does not begin a
  // page, if n does not fill it (the array's end fills it, too), or if two lanes that call together want the same one.
  GPUNVME_FN Span<T, kHelps> pin_to_overwrite(u64 i, u64 n) { return pin(i, n, true); }

  // Begins to read the pages of n elements from i on, as far as there are frames and slots at this moment.
  GPUNVME_FN void prefetch(u64 i, u64 n) {
    u64 count = size();
    n = i >= count ? 0 : n < count - i ? n : count - i;
    if (n != 0) {
      u64 last = page(a_.offset + (i + n) * sizeof(T) - 1);
      GPUNVME_ROLLED
      for (u64 p = page(a_.offset + i * sizeof(T)); p <= last; p++) {
        pages_.prefetch(p);
      }
    }
  }

  // Has what was stored written to the SSD: whole warps call, each with its number of `warps`. PageCache.flush() of the host does
  // it for all arrays, and has the SSD make it durable.
  GPUNVME_FN Status clean(u32 number, u32 warps) {
    u64 pages = (a_.offset + a_.bytes + (1ull << a_.cache->page_shift) - 1) >> a_.cache->page_shift;
    return note(pages_.clean(a_.first, pages, number, warps));
  }

 private:
  GPUNVME_FN u64 page(u64 at) const { return a_.first + (at >> a_.cache->page_shift); }

  GPUNVME_FN T* element(u32 f, u64 at) const {
    return reinterpret_cast<T*>(a_.cache->data(f) + (at & ((1ull << a_.cache->page_shift) - 1)));
  }

  GPUNVME_FN Status note(Status s) {
    status_ = failed(s) && !failed(status_) ? s : status_;
    return s;
  }

  // What is called for pages that are not there has its own registers, and takes no pointer to this object, which would have to be in
  // memory then.

  struct Missed {
    T value;
    Status status;
  };

  // Lanes that get their page give it back before others wait for a frame.
  GPUNVME_NOINLINE static Missed get_missed(const DeviceArray* array, const Storage* storage, u64 at) {
    Array a(array, storage);
    Missed missed = {T{}, status::kSuccess};
    u64 limit = 0;
    GPUNVME_ROLLED
    for (u32 tries = 0;; tries++) {
      Fetched fetched = a.pages_.fetch(a.page(at), false);
      missed.status = fetched.status;
      if (!failed(fetched.status)) {
        missed.value = *a.element(fetched.frame, at);
        a.pages_.release(fetched.frame, 1);
        return missed;
      }
      if (!a.again(fetched.status, tries, limit)) {
        return missed;
      }
    }
  }

  GPUNVME_NOINLINE static Status store_missed(const DeviceArray* array, const Storage* storage, u64 at, T value) {
    Array a(array, storage);
    u64 limit = 0;
    GPUNVME_ROLLED
    for (u32 tries = 0;; tries++) {
      Fetched fetched = a.pages_.fetch(a.page(at), false);
      if (!failed(fetched.status)) {
        *a.element(fetched.frame, at) = value;
        a.pages_.release_dirty(fetched.frame, 1);
        return fetched.status;
      }
      if (!a.again(fetched.status, tries, limit)) {
        return fetched.status;
      }
    }
  }

  GPUNVME_NOINLINE static Fetched pin_missed(const DeviceArray* array, const Storage* storage, u64 page, bool overwrite) {
    Array a(array, storage);
    u64 limit = 0;
    GPUNVME_ROLLED
    for (u32 tries = 0;; tries++) {
      Fetched fetched = a.pages_.fetch(page, overwrite);
      if (!failed(fetched.status) || !a.again(fetched.status, tries, limit)) {
        return fetched;
      }
    }
  }

  // Whether a page that found no frame is to try again, after a while that grows.
  GPUNVME_FN bool again(Status s, u32 tries, u64& limit) {
    u64 now = nanos();
    limit = limit == 0 ? now + a_.cache->timeout_ns : limit;
    if (s != status::kBusy || now > limit || pages_.stopped()) {
      return false;
    }
    pause(1000u << (tries < 5 ? tries : 5));
    return true;
  }

  GPUNVME_FN Span<T, kHelps> pin(u64 i, u64 n, bool overwrite) {
    u64 at = a_.offset + i * sizeof(T);
    u64 page_bytes = 1ull << a_.cache->page_shift;
    u64 left = (page_bytes - (at & (page_bytes - 1))) / sizeof(T);
    u64 rest = i < size() ? size() - i : 0;
    left = left < rest ? left : rest;
    bool whole = (at & (page_bytes - 1)) == 0 && n >= left && (left == rest || left * sizeof(T) == page_bytes);
    if (n == 0 || left == 0 || (overwrite && (!whole || a_.writable == 0))) {
      note(status::kArgument);
      return Span<T, kHelps>();
    }
    u32 group;
    Fetched fetched = {status::kSuccess, 0, false};
    bool hit = pages_.template touch<true>(page(at), warp::active(), group, fetched.frame);
    if (overwrite && warp::popcount(group) != 1) {
      if (hit) {
        pages_.release(fetched.frame, 1);
      }
      note(status::kArgument);
      return Span<T, kHelps>();
    }
    if (!hit) {
      // What is behind the array's end in its last page is somebody else's, and is kept.
      bool all = left * sizeof(T) == page_bytes || pages_.is_rest(page(at), left * sizeof(T));
      fetched = pin_missed(&a_, storage_, page(at), overwrite && all);
      if (failed(note(fetched.status))) {
        return Span<T, kHelps>();
      }
    }
    return Span<T, kHelps>(a_, storage_, fetched, element(fetched.frame, at), n < left ? n : left);
  }

  const DeviceArray& a_;
  const Storage* const storage_;
  CachedPages<kHelps> pages_;
  Status status_ = status::kSuccess;
};

template <class T>
using ServedArray = Array<T, false>;

// Elements of one page that stay in their place as long as this lives. Can be moved and not copied.
template <class T, bool kHelps = true>
class Span {
 public:
  GPUNVME_FN Span() {}
  GPUNVME_FN Span(Span&& from) { take(from); }
  GPUNVME_FN Span& operator=(Span&& from) {
    release();
    take(from);
    return *this;
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  GPUNVME_FN ~Span() { release(); }

  // Elements; 0 after a failure.
  GPUNVME_FN u32 size() const { return size_; }
  GPUNVME_FN const T& operator[](u32 i) const { return data_[i]; }
  GPUNVME_FN const T* data() const { return data_; }

  // For stores, and atomic operations of the caller. Null if the array is not writable, or after a failure.
  GPUNVME_FN T* mutable_data() {
    if (array_ == nullptr || array_->writable == 0) {
      return nullptr;
    }
    use_ = use_ == kRead ? kStored : use_;
    return data_;
  }

  // Gives the page back before the end of this object's life.
  GPUNVME_FN void release() {
    if (array_ == nullptr) {
      return;
    }
    CachedPages<kHelps> pages(array_->cache, storage_);
    if (use_ == kOverwritten) {
      pages.written(frame_);
    } else if (use_ == kStored) {
      pages.release_dirty(frame_, 1);
    } else {
      pages.release(frame_, 1);
    }
    array_ = nullptr;
    size_ = 0;
  }

 private:
  friend class Array<T, kHelps>;

  enum Use : u32 { kRead, kStored, kOverwritten };

  GPUNVME_FN Span(const DeviceArray& array, const Storage* storage, const Fetched& fetched, T* data, u64 size)
      : array_(&array),
        storage_(storage),
        data_(data),
        size_(static_cast<u32>(size)),
        frame_(fetched.frame),
        use_(fetched.fresh ? kOverwritten : kRead) {}

  GPUNVME_FN void take(Span& from) {
    array_ = from.array_;
    storage_ = from.storage_;
    data_ = from.data_;
    size_ = from.size_;
    frame_ = from.frame_;
    use_ = from.use_;
    from.array_ = nullptr;
    from.size_ = 0;
  }

  const DeviceArray* array_ = nullptr;
  const Storage* storage_ = nullptr;
  T* data_ = nullptr;
  u32 size_ = 0;
  u32 frame_ = 0;
  Use use_ = kRead;
};

}  // namespace gpunvme
