#pragma once
// What the NVM Express Base and NVM Command Set specifications (2.0, 1.0) say about I/O queue entries: layouts, opcodes,
// status fields. No behaviour.
#include "platform.cuh"

namespace gpunvme {

// Opcodes of the NVM Command Set (NVM 1.0, 3.1).
namespace opcode {
constexpr u32 kFlush = 0x00;
constexpr u32 kWrite = 0x01;
constexpr u32 kRead = 0x02;
constexpr u32 kCompare = 0x05;
constexpr u32 kWriteZeroes = 0x08;
}  // namespace opcode

// A submission queue entry (Base 2.0, figure "Command Format").
struct alignas(64) Sqe {
  u32 cdw0;  // opcode 7:0, FUSE 9:8, PSDT 15:14, CID 31:16
  u32 nsid;
  u32 cdw2;
  u32 cdw3;
  u64 mptr;
  u64 prp1;
  u64 prp2;
  u32 cdw10;  // SLBA 31:0
  u32 cdw11;  // SLBA 63:32
  u32 cdw12;  // NLB 15:0, zero-based; FUA 30
  u32 cdw13;
  u32 cdw14;
  u32 cdw15;
};
static_assert(sizeof(Sqe) == 64, "an SQE has 64 bytes");

// A completion queue entry (Base 2.0, figure "Completion Queue Entry").
struct alignas(16) Cqe {
  u32 dw0;  // command specific
  u32 dw1;
  u32 dw2;  // SQHD 15:0, SQID 31:16
  u32 dw3;  // CID 15:0, P 16, status 31:17
};
static_assert(sizeof(Cqe) == 16, "a CQE has 16 bytes");

GPUNVME_FN u32 cqe_sqid(u32 dw2) { return dw2 >> 16; }
GPUNVME_FN u32 cqe_cid(u32 dw3) { return dw3 & 0xFFFF; }
GPUNVME_FN u32 cqe_phase(u32 dw3) { return dw3 >> 16 & 1; }
// SC 7:0, SCT 10:8, CRD 12:11, M 13, DNR 14.
GPUNVME_FN u32 cqe_status(u32 dw3) { return dw3 >> 17; }

}  // namespace gpunvme
