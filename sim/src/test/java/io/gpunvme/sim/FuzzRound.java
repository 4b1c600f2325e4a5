package io.gpunvme.sim;

import static io.gpunvme.sim.FuzzMemory.PAGE;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.pci.Bar;
import io.gpunvme.nvme.spec.Cc;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.IdentifyNamespace;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Registers;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.nvme.spec.Vs;
import io.gpunvme.sim.FuzzHost.Queue;
import io.gpunvme.sim.FuzzMemory.Region;
import io.gpunvme.sim.FuzzMemory.Use;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.SplittableRandom;

/**
 * One controller and what is done to it: mostly commands, now and then something worse, after which
 * it is reset and must work.
 */
final class FuzzRound implements AutoCloseable {
  private static final long MEDIA_BYTES = 1 << 20;
  private static final long LONG_NANOS = 25_000_000;
  private static final int WRITE_BIT = 1;

  final FuzzHost host;
  private final SplittableRandom random;
  private final FuzzCommands commands;
  private final boolean threads;
  private int sent;

  FuzzRound(SplittableRandom random, int workers) {
    this.random = random;
    threads = workers > 0;
    int remoteShare = random.nextInt(3) * 50;
    SimConfig config = config(random, workers);
    host = new FuzzHost(config, 2 + random.nextInt(31), random, remoteShare);
    commands = new FuzzCommands(host, random);
    for (Region r : host.memory.data()) {
      for (long at = 0; at < r.memory.byteSize(); at += Long.BYTES) {
        FuzzMemory.word(r.memory, at, random.nextLong());
      }
      r.believe();
    }
  }

  private static SimConfig config(SplittableRandom random, int workers) {
    SimConfigBuilder b =
        SimConfig.builder()
            .workers(workers)
            .seed(random.nextLong())
            .latencyNanos(random.nextInt(3) == 0 ? 5_000 : 0)
            .readyNanos(random.nextInt(3) == 0 ? 10_000 : 0)
            .outOfOrder(random.nextInt(4) == 0)
            .strict(random.nextInt(4) != 0)
            .sgl(random.nextInt(4) != 0)
            .contiguousQueues(random.nextBoolean())
            .maxTransfer(random.nextInt(4) == 0 ? 0 : 8192L << random.nextInt(4))
            .mqes(random.nextInt(63, 300))
            .ioQueues(1 + random.nextInt(6))
            .vectors(1 + random.nextInt(40))
            .dstrd(random.nextInt(4) == 0 ? random.nextInt(6) : 0)
            .namespaceManagement(random.nextBoolean())
            .keepAlive(random.nextBoolean() && workers == 0)
            .hmbPreferred(random.nextInt(2) * 16)
            .cmbBytes(random.nextInt(2) * 4L * PAGE)
            .version(random.nextBoolean() ? Vs.V1_4 : Vs.V2_0)
            .maxNamespaces(2 + random.nextInt(4));
    b.namespace(NamespaceConfig.ram(MEDIA_BYTES, 512 << random.nextInt(4)));
    if (random.nextBoolean()) {
      NamespaceConfig second = NamespaceConfig.ram(MEDIA_BYTES, 65536);
      b.namespace(random.nextBoolean() ? second : second.asReadOnly());
    }
    return b.build();
  }

  /** How many commands were sent that were made to be wrong. */
  int sent() {
    return sent;
  }

  void run(int steps) {
    recover();
    for (int i = 0; i < steps; i++) {
      step();
    }
    recover();
  }

  private void step() {
    switch (random.nextInt(100)) {
      case 0 -> registers();
      case 1 -> configSpace();
      case 2 -> unmap();
      case 3 -> reset();
      case 4, 5, 6 -> doorbells();
      case 7, 8, 9, 10, 11 -> burst();
      default -> one();
    }
    maintain();
    host.memory.requireGuards();
  }

  // ---- commands

  /** One command, and exactly what it may have changed. */
  private void one() {
    boolean admin = random.nextInt(5) < 2;
    Queue q = admin ? host.admin : host.io;
    if (q.room() == 0) {
      // Event requests nobody answered: whether they were fetched is not known.
      recover();
      q = admin ? host.admin : host.io;
    }
    host.memory.believeData();
    MemorySegment sqe = commands.next(admin);
    Object what = new FuzzHost.Sent(sqe, false);
    int opcode = Sqe.opcode(sqe, 0);
    FuzzMemory.Reach allowed = (opcode & 3) == 2 || opcode == 0x7C ? commands.reach() : null;
    int before = q.taken;
    boolean twice = send(q, sqe);
    q.raw.ring();
    boolean alive = host.drain();
    // An event may answer the first one before the second is fetched: then there is no conflict.
    FuzzHost.require(
        !alive || !twice || q.taken != before + 1 || !q.isFetched() || isConflict(q.status),
        "a second command with the same identifier ended with %X: %s",
        q.status,
        what);
    host.requireRings(what);
    host.memory.requireUnchanged(q.status == 0 ? allowed : null, what);
    if (!alive) {
      recover();
    }
  }

  private static boolean isConflict(int status) {
    return StatusCode.of(status) == StatusCode.COMMAND_ID_CONFLICT;
  }

  /** Whether its identifier is that of a command that is outstanding. */
  private boolean send(Queue q, MemorySegment sqe) {
    int cid = cid(q);
    boolean twice = q.isOutstanding(cid);
    q.push(sqe, cid);
    sent++;
    return twice;
  }

  /** Usually one that is free; sometimes one that is outstanding. */
  private int cid(Queue q) {
    if (random.nextInt(16) == 0) {
      return random.nextBoolean() ? random.nextInt(4) : q.anyOutstanding();
    }
    int cid = random.nextInt(0x1_0000);
    while (q.isOutstanding(cid)) {
      cid = random.nextInt(0x1_0000);
    }
    return cid;
  }

  /** Many commands at once, in both queues. */
  private void burst() {
    fill(host.admin, true);
    fill(host.io, false);
    host.admin.raw.ring();
    host.io.raw.ring();
    if (!host.drain()) {
      recover();
    }
    host.requireRings("a burst");
    host.memory.believeData();
  }

  private void fill(Queue q, boolean admin) {
    for (int n = random.nextInt(q.room() + 1); n > 0; n--) {
      send(q, commands.next(admin));
    }
  }

  // ---- worse

  /** Doorbell stores that no correct host makes. */
  private void doorbells() {
    int bells = 2 * (host.config.ioQueues() + 1);
    for (int n = random.nextInt(6); n >= 0; n--) {
      int bell = random.nextInt(bells);
      Queue own = owner(bell / 2);
      int value =
          switch (random.nextInt(4)) {
            case 0 -> random.nextInt();
            case 1 -> random.nextInt(0x1_0000);
            case 2 -> -1 - random.nextInt(3);
            default -> random.nextInt(40);
          };
      if (own != null && bell % 2 == 0) {
        own.ringAnything(value);
      } else if (own == null || value != own.raw.head) {
        host.bar.write32(Registers.DOORBELLS + bell * (4L << host.dstrd), value);
      }
      // What is announced twice before the controller looks counts once. Old entries may have
      // created queues where ours are.
      if (!host.drain() || host.io == null || host.hasForeign()) {
        break;
      }
    }
    host.pump(random.nextInt(4) == 0 ? LONG_NANOS : 1);
    if (!host.drain()) {
      recover();
    }
    host.requireRings("doorbells");
    host.memory.believeData();
    restoreDoorbells();
  }

  private Queue owner(int qid) {
    if (qid == 0) {
      return host.admin;
    }
    return host.io != null && host.io.raw.qid == qid ? host.io : null;
  }

  /** Makes the doorbells of our queues say what is so again. */
  private void restoreDoorbells() {
    host.admin.raw.ring();
    host.admin.raw.ringHead(host.admin.raw.head);
    if (host.io != null) {
      host.io.raw.ring();
      host.io.raw.ringHead(host.io.raw.head);
    }
  }

  /** Reads and writes of any register of any BAR, while commands are on their way. */
  private void registers() {
    flood();
    int[] bars = host.config.cmbBytes() > 0 ? new int[] {0, 0, 0, 2, 4} : new int[] {0, 0, 0, 4};
    for (int n = random.nextInt(24); n >= 0; n--) {
      Bar bar = host.controller.bar(bars[random.nextInt(bars.length)]);
      access(bar, bar == host.bar);
      host.pump(random.nextInt(50) == 0 ? LONG_NANOS : 500);
    }
    host.isDead();
    recover();
  }

  private void access(Bar bar, boolean registers) {
    long offset = registers ? random.nextInt(0x80) & -4 : random.nextLong(bar.size());
    if (random.nextInt(8) == 0) {
      offset = random.nextInt(4) == 0 ? random.nextLong() : random.nextLong(bar.size() + 8);
    }
    long value = random.nextInt(4) == 0 ? random.nextLong() : random.nextInt(256);
    if (registers && random.nextInt(4) == 0) {
      offset = Registers.CC;
      value = RawHost.cc().value() | random.nextInt(2) | 1 << random.nextInt(28);
    }
    if (registers && offset >= Registers.DOORBELLS) {
      // A live queue's doorbell is a matter for doorbells().
      value = -1;
    }
    try {
      switch (random.nextInt(4)) {
        case 0 -> bar.read32(offset);
        case 1 -> bar.read64(offset);
        case 2 -> bar.write32(offset, (int) value);
        default -> bar.write64(offset, value);
      }
    } catch (InvalidRequestException e) {
      FuzzHost.require(
          offset < 0 || offset % 8 != 0 || offset > bar.size() - 8, "offset %d: %s", offset, e);
    }
  }

  /** Writes anywhere in configuration space, while commands are on their way. */
  private void configSpace() {
    flood();
    for (int n = random.nextInt(12); n >= 0; n--) {
      int bytes = 1 << random.nextInt(3);
      int offset = random.nextInt(4) == 0 ? 4 : random.nextInt(256) & -bytes;
      host.controller.config().write(offset, bytes, random.nextInt());
      host.controller.config().read(offset, bytes);
      host.pump(500);
    }
    host.isDead();
    recover();
  }

  /** Takes memory away that commands or queues are using. */
  private void unmap() {
    flood();
    for (int n = random.nextInt(3); n >= 0; n--) {
      Region r = host.memory.any(random, random.nextBoolean() ? Use.RING : Use.DATA);
      if (r.isMapped()) {
        host.memory.believeData();
        r.unmap();
        r.believe();
      }
      host.pump(500);
    }
    flood();
    for (int i = 0; i < 8; i++) {
      host.pump(1_000);
    }
    host.isDead();
    recover();
  }

  /** Resets of every kind, while commands are on their way. */
  private void reset() {
    flood();
    switch (random.nextInt(4)) {
      case 0 -> host.bar.write32(Registers.CC, random.nextInt(2) << 14);
      case 1 -> host.controller.reset();
      case 2 -> host.bar.write32(Registers.NSSR, Registers.NSSR_MAGIC);
      default -> {
        host.bar.write32(Registers.CC, 0);
        host.bar.write32(Registers.CC, RawHost.cc().with(Cc.EN, true).value());
      }
    }
    host.pump(500);
    host.isDead();
    recover();
  }

  /** Sends commands and does not wait for them. */
  private void flood() {
    if (!host.drain()) {
      return;
    }
    fill(host.admin, true);
    if (host.io != null) {
      fill(host.io, false);
      host.io.raw.ring();
    }
    host.admin.raw.ring();
    host.pump(random.nextInt(3_000));
  }

  // ---- keeping the account straight

  /** Follows what the commands happened to change, so that the next ones make sense. */
  private void maintain() {
    if (host.shadowed || host.ringsShared) {
      recover();
    }
    for (int n = 0; host.hasForeign() || host.isLate(); n++) {
      FuzzHost.require(n < 100, "queues that cannot be deleted");
      playForeign();
      for (int qid : host.foreignSqs.stream().toArray()) {
        host.runWell(host.admin, RawHost.deleteSq(qid));
      }
      if (host.isLate()) {
        host.runWell(host.admin, RawHost.deleteSq(host.io.raw.qid));
      }
      for (int qid : host.foreignCqs.stream().toArray()) {
        host.runWell(host.admin, RawHost.deleteCq(qid));
      }
      host.drain();
      host.memory.believeData();
    }
    if (host.io == null && !createIo()) {
      // Number of Queues leaves none: only a reset helps.
      recover();
    }
    if (host.namespacesChanged) {
      findNamespace();
    }
  }

  /** Lets a queue that a command created fetch nonsense. */
  private void playForeign() {
    for (int qid : host.foreignSqs.stream().toArray()) {
      for (Region r : host.memory.data()) {
        r.memory.fill((byte) random.nextInt());
        for (long at = 0; at < r.memory.byteSize(); at += Sqe.SIZE) {
          Sqe.dptr1(r.memory, at, 0);
          Sqe.dptr2(r.memory, at, 0);
          Sqe.cid(r.memory, at, random.nextInt(0x1_0000));
        }
      }
      long offset = Registers.sqTailDoorbell(qid, host.dstrd);
      host.bar.write32(offset, random.nextInt(64));
      host.pump(500);
      host.drain();
    }
  }

  private boolean createIo() {
    int qid = 1 + random.nextInt(host.config.ioQueues());
    return host.createIo(qid, 2 + random.nextInt(62)) || host.createIo(1, 16);
  }

  private void recover() {
    host.recover();
    host.memory.requireGuards();
    FuzzHost.require(createIo(), "no I/O queue after a reset");
    findNamespace();
    knownGood();
  }

  private MemorySegment identify(int cns, int nsid) {
    Region r = host.memory.data().getFirst();
    host.runWell(host.admin, RawHost.sqe(6, nsid, r.base, 0, cns, 0, 0));
    r.believe();
    return r.memory;
  }

  /** Finds an active namespace that can be written. */
  private void findNamespace() {
    host.namespacesChanged = false;
    commands.blocks = 0;
    for (int nsid = 1; nsid <= host.config.maxNamespaces() && commands.blocks == 0; nsid++) {
      IdentifyNamespace id = new IdentifyNamespace(identify(Cns.NAMESPACE, nsid));
      if (id.getLong(IdentifyNamespace.NCAP) > 0
          && (id.getInt(IdentifyNamespace.NSATTR) & WRITE_BIT) == 0) {
        commands.nsid = nsid;
        commands.blockShift = id.format().lbads();
        commands.blocks = id.getLong(IdentifyNamespace.NSZE);
      }
    }
    if (commands.blocks == 0) {
      commands.nsid = 1;
      commands.blocks = 1;
    } else if (!threads) {
      knownGood();
    }
  }

  /** Identify, and a Write and Read of one block, that must work and touch nothing else. */
  private void knownGood() {
    FuzzHost.require(
        new IdentifyController(identify(Cns.CONTROLLER, 0)).getInt(IdentifyController.SQES) == 0x66,
        "Identify is wrong");
    if (new IdentifyNamespace(identify(Cns.NAMESPACE, commands.nsid))
            .getLong(IdentifyNamespace.NCAP)
        == 0) {
      return;
    }
    Region r = host.memory.data().getLast();
    int bytes = 1 << commands.blockShift;
    Region big = bytes <= 2 * PAGE ? r : null;
    if (big == null) {
      return;
    }
    long prp2 = bytes > PAGE ? r.base + PAGE : 0;
    long slba = random.nextLong(commands.blocks);
    host.memory.believeData();
    r.memory.fill((byte) 0x5A);
    r.memory.set(ValueLayout.JAVA_LONG, 0, random.nextLong());
    r.believe();
    host.runWell(host.io, RawHost.io(IoOpcode.WRITE, commands.nsid, slba, 1, r.base, prp2));
    r.memory.asSlice(0, bytes).fill((byte) 0);
    host.runWell(host.io, RawHost.io(IoOpcode.READ, commands.nsid, slba, 1, r.base, prp2));
    host.memory.requireUnchanged(null, "a Read of what had been written");
  }

  @Override
  public void close() {
    host.close();
  }
}
