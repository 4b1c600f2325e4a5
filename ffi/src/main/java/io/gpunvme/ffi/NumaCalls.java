package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.BitSet;

/**
 * Where the kernel takes memory for the calling thread (set_mempolicy(2)), and on which processors
 * it lets the thread run (sched_setaffinity(2)).
 *
 * <p>All of it is about the calling thread, which is the carrier if the thread is virtual.
 */
public final class NumaCalls {
  /** The highest number of a node that can be named; kernels count up to 1024 nodes. */
  public static final int MAX_NODE = 4095;

  private static final boolean ARM = System.getProperty("os.arch").equals("aarch64");
  private static final long SYS_GET_MEMPOLICY = ARM ? 236 : 239;
  private static final long SYS_SET_MEMPOLICY = ARM ? 237 : 238;

  private static final int MPOL_DEFAULT = 0;
  private static final int MPOL_PREFERRED = 1;

  /** The kernel takes one from the number of bits that it is told. */
  private static final long NODE_BITS = MAX_NODE + 2L;

  /** Of a mask of processors: 8192, as many as a kernel can count. */
  private static final int CPU_BYTES = 1024;

  private NumaCalls() {}

  /**
   * Whether the calling thread has no memory policy of its own: memory is near the processor that
   * touches it first.
   *
   * @throws PosixException {@link Errno#ENOSYS} of a kernel without NUMA, {@link Errno#EPERM} in
   *     many containers
   */
  public static boolean hasUsualMemory() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment mode = arena.allocate(JAVA_INT);
      Native.once(
          "get_mempolicy",
          () -> "of this thread",
          s -> LibC.SYSCALL.call(s, SYS_GET_MEMPOLICY, mode, 0, 0));
      return mode.get(JAVA_INT, 0) == MPOL_DEFAULT;
    }
  }

  /**
   * From now on memory of the calling thread is of this node while it has some, and of others then.
   *
   * @param node 0..{@link #MAX_NODE}
   * @throws PosixException {@link Errno#EINVAL} if the node has no memory that this process may
   *     have; otherwise as {@link #hasUsualMemory}
   */
  public static void preferNode(int node) {
    if (node < 0 || node > MAX_NODE) {
      throw new IllegalArgumentException("node " + node + " is outside 0.." + MAX_NODE);
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment nodes = arena.allocate(JAVA_LONG, (MAX_NODE + 1) / Long.SIZE);
      nodes.setAtIndex(JAVA_LONG, node / Long.SIZE, 1L << node);
      setPolicy(MPOL_PREFERRED, nodes, NODE_BITS);
    }
  }

  /** From now on the calling thread has no memory policy of its own. */
  public static void useUsualMemory() {
    setPolicy(MPOL_DEFAULT, MemorySegment.NULL, 0);
  }

  private static void setPolicy(int mode, MemorySegment nodes, long bits) {
    Native.once(
        "set_mempolicy",
        () -> mode == MPOL_DEFAULT ? "default" : "preferred",
        s -> LibC.SYSCALL.call(s, SYS_SET_MEMPOLICY, mode, nodes, bits));
  }

  /** The processors that the calling thread may run on. */
  public static BitSet affinity() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment mask = arena.allocate(CPU_BYTES, Long.BYTES);
      Native.once(
          "sched_getaffinity",
          () -> "of this thread",
          s -> LibC.SCHED_GETAFFINITY.call(s, 0, CPU_BYTES, mask));
      return BitSet.valueOf(mask.toArray(JAVA_LONG));
    }
  }

  /**
   * From now on the calling thread runs on these processors only; threads that it starts do, too.
   *
   * @param processors at least one of them is one that this process may have
   * @throws PosixException {@link Errno#EINVAL} if none is
   */
  public static void setAffinity(BitSet processors) {
    long[] words = Arrays.copyOf(processors.toLongArray(), CPU_BYTES / Long.BYTES);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment mask = arena.allocateFrom(JAVA_LONG, words);
      Native.once(
          "sched_setaffinity",
          () -> "of this thread",
          s -> LibC.SCHED_SETAFFINITY.call(s, 0, CPU_BYTES, mask));
    }
  }
}
