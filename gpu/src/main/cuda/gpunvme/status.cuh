#pragma once
// What became of a command, and the log in which kernels tell the host of trouble.
#include "memory.cuh"

namespace gpunvme {

// 0 is success. Up to 7FFFh it is the status field of the completion (SC 7:0, SCT 10:8, CRD 12:11, M 13, DNR 14); above,
// one of these.
using Status = u32;

namespace status {
constexpr Status kSuccess = 0;
constexpr Status kDnr = 0x4000;       // Do Not Retry, of a completion
constexpr Status kAbortedByHost = 0x371;  // Command Aborted By Host: it was in flight when the host recovered its queue. It may or may
                                          // not have been carried out; its data moves no more, and it may be submitted again
constexpr Status kMade = 0x8000;      // set in every status that no controller gave
constexpr Status kPending = 0x8000;   // not over yet
constexpr Status kTimeout = 0x8001;   // no completion before the deadline; the slot is quarantined, the data may still move
constexpr Status kStopped = 0x8002;   // the host told the kernel to stop; as above if the command was submitted
constexpr Status kBusy = 0x8003;      // no slot, or frame of a page cache, became free before the deadline, or all slots are quarantined; this command was not
                                      // submitted
constexpr Status kArgument = 0x8004;  // outside the namespace or the buffer, misaligned, too long, or a queue that is laid out
                                      // for the other kind of use; nothing was submitted
constexpr Status kCorrupt = 0x8005;   // a page cache that verifies got a page with other bytes than it had before
}  // namespace status

// Only SCT and SC say so: a success may come with CRD, M or DNR set (Base 2.0, "Status Field").
GPUNVME_FN bool failed(Status s) { return (s & (status::kMade | 0x7FF)) != 0; }

// Whether a controller ended the command with a failure that may pass: the same command may be submitted again. A wait before
// that (CRD) is the caller's; SSDs name one seldom.
GPUNVME_FN bool may_retry(Status s) { return failed(s) && (s & (status::kMade | status::kDnr)) == 0; }

// What an error record tells of.
namespace trouble {
constexpr u32 kStatus = 1;     // a command failed; `status` says how
constexpr u32 kTimeout = 2;    // a command was quarantined at its deadline
constexpr u32 kLate = 3;       // the completion of a quarantined command arrived after all
constexpr u32 kStale = 4;      // a completion for a command that was over: doubled, or from before a reset
constexpr u32 kUnknown = 5;    // a completion whose CID no slot has
constexpr u32 kMalformed = 6;  // a completion with another queue's SQID; the first of a queue only
}  // namespace trouble

struct alignas(32) ErrorRecord {
  u32 kind;      // namespace trouble
  Status status;
  u32 qid;
  u32 cid;
  u64 slba;      // of the command. 0, as are opcode and user, where it is not known: kUnknown, kMalformed, and kStale on
                 // shared queues, where the slot may be another thread's by now
  u32 opcode;
  u32 user;      // the caller's number for the command (exclusive queues)
};

// Memory of the GPU, read by the host when no kernel runs. Records beyond the capacity are counted only.
struct alignas(32) ErrorLog {
  u32 count;
  u32 capacity;
  u32 reserved[6];
  ErrorRecord record[1];

  GPUNVME_FN void add(const ErrorRecord& r) {
    u32 i = mem::fetch_add(&count, 1u);
    if (i < capacity) {
      record[i] = r;
    }
  }
};
static_assert(sizeof(ErrorRecord) == 32 && sizeof(ErrorLog) == 64, "layout shared with the host");

}  // namespace gpunvme
