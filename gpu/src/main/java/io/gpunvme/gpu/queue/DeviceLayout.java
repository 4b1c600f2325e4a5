package io.gpunvme.gpu.queue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The structures that the device library shares with the host: sizes and offsets in bytes, little
 * endian. The fields are explained where they are declared, in {@code gpunvme/queue.cuh}, {@code
 * status.cuh}, {@code io.cuh}, {@code set.cuh}, {@code file.cuh}, {@code directory.cuh}, {@code
 * tier.cuh}, {@code cache.cuh} and {@code array.cuh}; a test compares both sides.
 */
public final class DeviceLayout {
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);

  private static final VarHandle INT_HANDLE = INT.varHandle();

  private DeviceLayout() {}

  /** {@code struct Queue}: a queue pair. */
  public static final class Queue {
    public static final long SIZE = 512;
    public static final long QID = 0;
    public static final long DEPTH = 4;
    public static final long SQ_BITS = 8;
    public static final long CQ_BITS = 12;
    public static final long SLOT_BITS = 16;
    public static final long FLAGS = 20;
    public static final long TIMEOUT_NS = 24;
    public static final long SQ = 32;
    public static final long CQ = 40;
    public static final long SQ_DOORBELL = 48;
    public static final long CQ_DOORBELL = 56;
    public static final long SLOTS = 64;
    public static final long INFOS = 72;
    public static final long FREE_SLOTS = 80;
    public static final long MARKS = 88;
    public static final long ERRORS = 96;
    public static final long STOP = 104;
    public static final long RECOVERY = 112;
    public static final long RECOVERED = 120;
    public static final long SQ_TAIL = 128;
    public static final long SQ_RUNG = 132;
    public static final long FREE_HEAD = 136;
    public static final long FREE_TAIL = 140;
    public static final long SERVICE = 256;
    public static final long CQ_HEAD = 260;
    public static final long CQ_RUNG = 264;
    public static final long QUARANTINED = 268;
    public static final long SUBMITTED = 384;
    public static final long COMPLETED = 392;
    public static final long SQ_DOORBELLS = 400;
    public static final long CQ_DOORBELLS = 408;
    public static final long FAILURES = 416;
    public static final long TIMEOUTS = 424;
    public static final long LATE = 432;
    public static final long STALE = 440;
    public static final long UNKNOWN = 448;
    public static final long MALFORMED = 456;
    public static final long RECOVERED_SLOTS = 464;

    /** {@code queue_flags::kDoorbellsInMemory}. */
    public static final int DOORBELLS_IN_MEMORY = 1;

    /** {@code queue_flags::kShared}. */
    public static final int SHARED = 2;

    /** {@code queue_flags::kRingsInGpuMemory}. */
    public static final int RINGS_IN_GPU_MEMORY = 4;

    private Queue() {}
  }

  /** {@code struct Recovery}. */
  public static final class Recovery {
    public static final long SIZE = 256;
    public static final long ASKED = 0;
    public static final long MADE = 4;
    public static final long QUEUE_COUNT = 8;
    public static final long QUEUES = 16;
    public static final long STATE = 128;

    private Recovery() {}
  }

  /** The words of {@code Queue::slots}, {@code namespace slot}: state above, CID below. */
  public static final class Slot {
    public static final int IN_FLIGHT = 0x8000 << 16;
    public static final int QUARANTINED = 0x8001 << 16;
    public static final int FREE = 0x8002 << 16;

    /** {@code sizeof(SlotInfo)}. */
    public static final long INFO_SIZE = 16;

    private Slot() {}
  }

  /** {@code struct ErrorLog} with {@code struct ErrorRecord}. */
  public static final class Errors {
    public static final long COUNT = 0;
    public static final long CAPACITY = 4;
    public static final long RECORDS = 32;
    public static final long RECORD_SIZE = 32;
    public static final long KIND = 0;
    public static final long STATUS = 4;
    public static final long QID = 8;
    public static final long CID = 12;
    public static final long SLBA = 16;
    public static final long OPCODE = 24;
    public static final long USER = 28;

    private Errors() {}
  }

  /** {@code struct Buffer}: memory that a controller may reach. */
  public static final class Buffer {
    public static final long SIZE = 64;
    public static final long BYTES = 0;
    public static final long BUS = 8;
    public static final long PAGES = 16;
    public static final long LISTS = 24;
    public static final long MEMORY = 32;
    public static final long PAGE_SHIFT = 40;

    private Buffer() {}
  }

  /** {@code struct Namespace}. */
  public static final class Namespace {
    public static final long SIZE = 64;
    public static final long BLOCKS = 0;
    public static final long NSID = 8;
    public static final long BLOCK_SHIFT = 12;
    public static final long MAX_BLOCKS = 16;
    public static final long QUEUE_COUNT = 20;
    public static final long QUEUES = 24;

    private Namespace() {}
  }

  /** {@code struct Storage}: the argument of a kernel. */
  public static final class Storage {
    public static final long SIZE = 64;
    public static final long VERSION = 0;
    public static final long NAMESPACE_COUNT = 4;
    public static final long NAMESPACES = 8;
    public static final long BUFFERS = 16;
    public static final long BUFFER_COUNT = 24;
    public static final long STOP = 32;

    /** {@code Storage::kVersion}. */
    public static final int CURRENT = 1;

    private Storage() {}
  }

  /** {@code struct DeviceSet}. */
  public static final class Set {
    public static final long SIZE = 64;
    public static final long BLOCKS = 0;
    public static final long MEMBERS = 8;
    public static final long INVERSE = 16;
    public static final long MEMBER_COUNT = 24;
    public static final long BLOCK_SHIFT = 28;
    public static final long UNIT_SHIFT = 32;
    public static final long MAX_BLOCKS = 36;
    public static final long STEP_SHIFT = 40;

    private Set() {}
  }

  /** {@code struct SetMember}. */
  public static final class Member {
    public static final long SIZE = 16;
    public static final long SLBA = 0;
    public static final long SSD = 8;

    private Member() {}
  }

  /** {@code struct DeviceFile}. */
  public static final class File {
    public static final long SIZE = 32;
    public static final long BYTES = 0;
    public static final long EXTENTS = 8;
    public static final long SET = 16;
    public static final long EXTENT_COUNT = 24;

    private File() {}
  }

  /** {@code struct FileExtent}. */
  public static final class Extent {
    public static final long SIZE = 16;
    public static final long OFFSET = 0;
    public static final long BLOCK = 8;

    /** {@code FileExtent::kHole}. */
    public static final long HOLE = -1;

    private Extent() {}
  }

  /** {@code struct DeviceDirectory}. */
  public static final class Directory {
    public static final long SIZE = 64;
    public static final long COUNT = 0;
    public static final long LONGEST = 4;
    public static final long SLOT_MASK = 8;
    public static final long SEED = 12;
    public static final long PROBES = 16;
    public static final long FILES = 24;
    public static final long SLOTS = 32;
    public static final long ENDS = 40;
    public static final long PATHS = 48;

    private Directory() {}
  }

  /** {@code struct DirectorySlot}. */
  public static final class PathSlot {
    public static final long SIZE = 8;
    public static final long HASH = 0;
    public static final long FILE = 4;

    /** {@code DirectorySlot::kNone}. */
    public static final int NONE = -1;

    private PathSlot() {}
  }

  /** {@code struct PageCache}. */
  public static final class Cache {
    public static final long SIZE = 256;
    public static final long SETS = 0;
    public static final long SIDES = 8;
    public static final long INFOS = 16;
    public static final long MEMORY = 24;
    public static final long STORAGE = 32;
    public static final long SOURCES = 40;
    public static final long BUFFER_OFFSET = 48;
    public static final long BUFFER = 56;
    public static final long SOURCE_COUNT = 60;
    public static final long SET_COUNT = 64;
    public static final long PAGE_SHIFT = 68;
    public static final long COUNTS = 72;
    public static final long TIMEOUT_NS = 80;
    public static final long TIER = 88;
    public static final long VERIFIES = 96;
    public static final long MISSES = 128;
    public static final long JOINED = 136;
    public static final long PREFETCHED = 144;
    public static final long READS = 152;
    public static final long WRITES = 160;
    public static final long EVICTIONS = 168;
    public static final long CONFLICTS = 176;
    public static final long READ_FAILURES = 184;
    public static final long WRITE_FAILURES = 192;
    public static final long LOST = 200;
    public static final long REGAINED = 208;
    public static final long PARKED = 216;
    public static final long CORRUPT = 224;

    /** {@code kWays}. */
    public static final int WAYS = 16;

    private Cache() {}
  }

  /** {@code struct FrameSet}: a word for each of its frames. */
  public static final class FrameSet {
    public static final long SIZE = 128;

    private FrameSet() {}
  }

  /** {@code struct FrameInfo}. */
  public static final class FrameInfo {
    public static final long SIZE = 16;
    public static final long QUEUE = 0;
    public static final long PARKED = 8;

    private FrameInfo() {}
  }

  /** {@code struct SetSide}. */
  public static final class SetSide {
    public static final long SIZE = 16;
    public static final long ACQUIRES = 8;

    private SetSide() {}
  }

  /** {@code struct HostTier}. */
  public static final class Tier {
    public static final long SIZE = 128;
    public static final long SETS = 0;
    public static final long HANDS = 8;
    public static final long USES = 16;
    public static final long MEMORY = 24;
    public static final long SET_COUNT = 32;
    public static final long USE_MASK = 36;
    public static final long AGE_SHIFT = 40;
    public static final long PAGE_SHIFT = 44;
    public static final long MARGIN = 48;
    public static final long HITS = 72;
    public static final long INSERTS = 80;
    public static final long EVICTIONS = 88;
    public static final long REFUSALS = 96;

    private Tier() {}
  }

  /** {@code struct PageSource}. */
  public static final class PageSource {
    public static final long SIZE = 64;
    public static final long FIRST = 0;
    public static final long PAGES = 8;
    public static final long FILE = 16;
    public static final long TIERED = 24;
    public static final long SUMS = 32;

    private PageSource() {}
  }

  /** {@code struct DeviceArray}. */
  public static final class Array {
    public static final long SIZE = 64;
    public static final long CACHE = 0;
    public static final long FIRST = 8;
    public static final long OFFSET = 16;
    public static final long BYTES = 24;
    public static final long WRITABLE = 32;
    public static final long ELEMENT_BYTES = 36;

    private Array() {}
  }

  /** {@code struct TransferArgs} of {@code kernels/transfer.cu}. */
  public static final class TransferArgs {
    public static final long SIZE = 128;
    public static final long QUEUES = 0;
    public static final long BUFFER = 8;
    public static final long SLBA = 16;
    public static final long OFFSET = 24;
    public static final long BLOCKS = 32;
    public static final long ORDER = 40;
    public static final long STATUSES = 48;
    public static final long STARTED = 56;
    public static final long CURSOR = 64;
    public static final long MOVED = 72;
    public static final long COMMANDS = 80;
    public static final long NSID = 84;
    public static final long BASE = 88;
    public static final long TARGETS = 96;
    public static final long BUFFERS = 104;
    public static final long LATENCIES = 112;
    public static final long ENDED = 120;

    private TransferArgs() {}
  }

  /** A 4-byte field. */
  public static int getInt(MemorySegment struct, long offset) {
    return struct.get(INT, offset);
  }

  /** The same, before whatever the caller reads after it. */
  static int getIntAcquire(MemorySegment struct, long offset) {
    return (int) INT_HANDLE.getAcquire(struct, offset);
  }

  /** Sets a 4-byte field. */
  public static void setInt(MemorySegment struct, long offset, int value) {
    struct.set(INT, offset, value);
  }

  /** An 8-byte field. */
  public static long getLong(MemorySegment struct, long offset) {
    return struct.get(LONG, offset);
  }

  /** Sets an 8-byte field. */
  public static void setLong(MemorySegment struct, long offset, long value) {
    struct.set(LONG, offset, value);
  }
}
