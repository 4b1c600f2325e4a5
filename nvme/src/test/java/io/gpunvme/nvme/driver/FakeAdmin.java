package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Cap;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.IdentifyNamespace;
import io.gpunvme.nvme.spec.LbaFormat;
import io.gpunvme.nvme.spec.NamespaceDescriptors;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;

/**
 * The controller's side of the admin queue: one thread that answers commands. A test changes the
 * identify data it hands out, or puts an {@link Answer} before the normal ones.
 */
final class FakeAdmin {
  /** Returned by an {@link Answer}: the command never completes. */
  static final int NEVER = -1;

  /** Returned by an {@link Answer}: the normal answer, please. */
  static final int NORMAL = -2;

  /** Answers a command. */
  interface Answer {
    /**
     * @param sqe a copy of the command
     * @param data what PRP1 points to, 4096 bytes, or null
     * @return a 15-bit status, {@link #NEVER} or {@link #NORMAL}
     */
    int answer(MemorySegment sqe, MemorySegment data);
  }

  private static final ValueLayout.OfInt DOORBELL = ValueLayout.JAVA_INT;

  private final FakeFunction function;
  private final MemorySegment sqe = Arena.ofShared().allocate(Sqe.SIZE, 8);
  private final Deque<Integer> events = new ArrayDeque<>();
  private volatile Thread thread;
  private MemorySegment sq;
  private MemorySegment cq;
  private int sqSize;
  private int cqSize;
  private int head;
  private int tail;
  private int phase;
  private int dw0;

  final IdentifyController controller = new IdentifyController(page());
  final IdentifyNamespace namespace = new IdentifyNamespace(page());
  final NamespaceDescriptors descriptors = new NamespaceDescriptors(page());

  /** Active NSIDs in the order of the list. */
  volatile List<Integer> active = List.of(1);

  /** Answer to Set Features, Number of Queues. */
  volatile int queuesGranted = 0x0003_0003;

  volatile Answer first = (command, data) -> NORMAL;

  /** Opcodes in the order seen. */
  final List<Integer> seen = new CopyOnWriteArrayList<>();

  /** Commands as text in the order seen. */
  final List<String> log = new CopyOnWriteArrayList<>();

  FakeAdmin(FakeFunction function) {
    this.function = function;
    controller
        .set(IdentifyController.SN, "F1")
        .set(IdentifyController.MN, "fake")
        .set(IdentifyController.FR, "1")
        .set(IdentifyController.SQES, 0x66)
        .set(IdentifyController.CQES, 0x44)
        .set(IdentifyController.NN, 8)
        .set(IdentifyController.VER, 0x10400)
        .set(IdentifyController.CNTRLTYPE, 1);
    controller
        .set(IdentifyController.ACL, 3)
        .set(IdentifyController.AERL, 3)
        .set(IdentifyController.OACS, IdentifyController.OACS_FORMAT)
        .set(IdentifyController.MDTS, 5);
    namespace
        .set(IdentifyNamespace.NSZE, 1000)
        .set(IdentifyNamespace.NCAP, 1000)
        .set(IdentifyNamespace.NUSE, 1000)
        .set(IdentifyNamespace.NLBAF, 1)
        .lbaf(0, new LbaFormat(0, 9, 0));
    namespace
        .lbaf(1, new LbaFormat(0, 12, 0))
        .set(
            IdentifyNamespace.NGUID,
            new byte[] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
    descriptors.append(NamespaceDescriptors.CSI, new byte[] {0});
  }

  private static MemorySegment page() {
    return MemorySegment.ofArray(new byte[4096]);
  }

  synchronized void start(long sqBus, int sqEntries, long cqBus, int cqEntries) {
    stop();
    sqSize = sqEntries;
    cqSize = cqEntries;
    sq = function.at(sqBus, (long) sqSize * Sqe.SIZE);
    cq = function.at(cqBus, (long) cqSize * Cqe.SIZE);
    head = 0;
    tail = 0;
    phase = 1;
    events.clear();
    function.doorbells().fill((byte) 0);
    Thread next = Thread.ofPlatform().daemon().name("fake-admin").unstarted(this::run);
    thread = next;
    next.start();
  }

  void stop() {
    Thread t;
    synchronized (this) {
      t = thread;
      thread = null;
    }
    if (t != null && t != Thread.currentThread()) {
      try {
        t.join(5000);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private void run() {
    Thread self = Thread.currentThread();
    while (thread == self) {
      boolean worked;
      synchronized (this) {
        worked = thread == self && step();
      }
      if (!worked) {
        LockSupport.parkNanos(10_000);
      }
    }
  }

  private boolean step() {
    long offset = Registers.sqTailDoorbell(0, function.cap.get(Cap.DSTRD)) - Registers.DOORBELLS;
    if ((int) DOORBELL.varHandle().getAcquire(function.doorbells(), offset) == head) {
      return false;
    }
    MemorySegment.copy(sq, (long) head * Sqe.SIZE, sqe, 0, Sqe.SIZE);
    head = (head + 1) % sqSize;
    seen.add(Sqe.opcode(sqe, 0));
    log.add(Sqe.describe(sqe, 0));
    MemorySegment data = Sqe.dptr1(sqe, 0) == 0 ? null : function.at(Sqe.dptr1(sqe, 0), 4096);
    dw0 = 0;
    int cid = Sqe.cid(sqe, 0);
    int status = first.answer(sqe, data);
    if (status == NORMAL) {
      status = normal(data, cid);
    }
    if (status != NEVER) {
      post(cid, status, dw0);
    }
    return true;
  }

  /** Posts a completion; answers call it for extra ones. */
  synchronized void post(int cid, int status, int result) {
    Cqe.put(cq, (long) tail * Cqe.SIZE, result, 0, head, 0, cid, status, phase);
    if (++tail == cqSize) {
      tail = 0;
      phase ^= 1;
    }
  }

  /** Dword 0 of the completion an answer returns. */
  void result(int value) {
    dw0 = value;
  }

  /** Completes one outstanding Asynchronous Event Request; false if there is none. */
  synchronized boolean event(int value) {
    Integer cid = events.poll();
    if (cid != null) {
      post(cid, 0, value);
    }
    return cid != null;
  }

  synchronized int eventRequests() {
    return events.size();
  }

  private int normal(MemorySegment data, int cid) {
    switch (Sqe.opcode(sqe, 0)) {
      case AdminOpcode.IDENTIFY -> {
        return identify(data);
      }
      case AdminOpcode.SET_FEATURES -> {
        if ((Sqe.cdw10(sqe, 0) & 0xFF) == FeatureId.NUMBER_OF_QUEUES) {
          dw0 = queuesGranted;
        }
        return 0;
      }
      case AdminOpcode.ASYNC_EVENT_REQUEST -> {
        events.add(cid);
        return NEVER;
      }
      default -> {
        return 0;
      }
    }
  }

  private int identify(MemorySegment data) {
    int nsid = Sqe.nsid(sqe, 0);
    switch (Sqe.cdw10(sqe, 0) & 0xFF) {
      case Cns.CONTROLLER -> data.copyFrom(controller.segment());
      case Cns.NAMESPACE -> data.copyFrom(namespace.segment());
      case Cns.NAMESPACE_DESCRIPTORS -> data.copyFrom(descriptors.segment());
      case Cns.ACTIVE_NAMESPACES -> {
        int i = 0;
        for (int id : active) {
          if (Integer.compareUnsigned(id, nsid) > 0 && i < 1024) {
            data.setAtIndex(ValueLayout.JAVA_INT, i++, id);
          }
        }
      }
      default -> {
        return StatusCode.INVALID_FIELD.dnr();
      }
    }
    return 0;
  }
}
