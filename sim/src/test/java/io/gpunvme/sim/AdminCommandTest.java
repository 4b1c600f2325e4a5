package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.spec.ActiveNamespaceList;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.IdentifyNamespace;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** Format NVM, namespace management and attachment, Keep Alive. */
class AdminCommandTest {
  private static int[] active(CommandLab lab) {
    lab.host.adminOk(lab.identify(Cns.ACTIVE_NAMESPACES, 0));
    return new ActiveNamespaceList(lab.memory()).stream().toArray();
  }

  private static boolean firstBlockIsZero(CommandLab lab, int nsid) {
    lab.memory().fill((byte) 1);
    lab.ioOk(RawHost.io(IoOpcode.READ, nsid, 0, 1, lab.bus(), 0));
    return Arrays.equals(
        lab.memory().asSlice(0, 512).toArray(ValueLayout.JAVA_BYTE), new byte[512]);
  }

  private static void writeFirstBlock(CommandLab lab, int nsid) {
    lab.memory().fill((byte) 7);
    lab.ioOk(RawHost.io(IoOpcode.WRITE, nsid, 0, 1, lab.bus(), 0));
  }

  @Test
  void formatWipesOneNamespace() {
    NamespaceConfig other = NamespaceConfig.ram(1 << 20, 512);
    try (CommandLab lab = new CommandLab(b -> b.namespace(other))) {
      writeFirstBlock(lab, 1);
      writeFirstBlock(lab, 3);
      MemorySegment format = lab.format();
      Sqe.cdw10(format, 0, 1 << 9);
      lab.host.adminOk(format);
      assertThat(firstBlockIsZero(lab, 1)).isTrue();
      assertThat(firstBlockIsZero(lab, 3)).isFalse();
    }
  }

  @Test
  void formatOfAllNamespacesIsAllOrNothing() {
    try (CommandLab lab = new CommandLab()) {
      writeFirstBlock(lab, 1);
      MemorySegment format = lab.format();
      Sqe.nsid(format, 0, Sqe.NSID_ALL);
      assertThat(lab.status(true, format)).isEqualTo(StatusCode.NAMESPACE_WRITE_PROTECTED.dnr());
      assertThat(firstBlockIsZero(lab, 1)).isFalse();
      lab.host.adminOk(lab.attach(2, 1));
      lab.host.adminOk(format);
      assertThat(firstBlockIsZero(lab, 1)).isTrue();
    }
  }

  @Test
  void formatWhileAnotherWorkerReadsAndWritesTheLastBlock() {
    try (CommandLab lab = new CommandLab(b -> b.workers(2))) {
      MemorySegment format = lab.format();
      int[] seen = new int[2];
      // Chance decides who is first; a busy machine needs more rounds to show both.
      for (int round = 0; round < 2_000 || (round < 200_000 && seen[0] * seen[1] == 0); round++) {
        int opcode = round % 2 == 0 ? IoOpcode.READ : IoOpcode.WRITE;
        MemorySegment io = RawHost.io(opcode, 1, CommandLab.BLOCKS - 1, 1, lab.bus(), 0);
        lab.queue.push(io);
        lab.queue.push(io);
        lab.queue.ring();
        Sqe.cdw10(format, 0, round % 2);
        lab.host.adminOk(format);
        for (int i = 0; i < 2; i++) {
          int status = lab.host.next(lab.queue).status() & ~Status.MORE;
          assertThat(status).isIn(0, StatusCode.LBA_OUT_OF_RANGE.dnr());
          seen[status == 0 ? 0 : 1]++;
        }
      }
      assertThat(seen[0]).as("in time").isPositive();
      assertThat(seen[1]).as("too late").isPositive();
      assertThat(lab.host.controller.internalError()).isNull();
    }
  }

  @Test
  void aNamespaceIsCreatedAttachedUsedAndDeleted() {
    try (CommandLab lab = new CommandLab()) {
      MemorySegment create = lab.createNamespace();
      new IdentifyNamespace(lab.memory())
          .set(IdentifyNamespace.NSZE, 16)
          .set(IdentifyNamespace.NCAP, 16)
          .set(IdentifyNamespace.FLBAS, 1);
      assertThat(lab.host.adminOk(create)).isEqualTo(3);
      assertThat(active(lab)).containsExactly(1, 2);
      assertThat(lab.status(false, RawHost.io(IoOpcode.READ, 3, 0, 1, lab.bus(), 0)))
          .isEqualTo(StatusCode.INVALID_FIELD.dnr());
      lab.host.adminOk(lab.identifyController());
      assertThat(new IdentifyController(lab.memory()).getLong(IdentifyController.UNVMCAP))
          .isEqualTo(Namespaces.SPARE - 16 * 4096);

      lab.host.adminOk(lab.attach(3, 0));
      assertThat(active(lab)).containsExactly(1, 2, 3);
      lab.host.adminOk(lab.identify(Cns.NAMESPACE, 3));
      IdentifyNamespace ns = new IdentifyNamespace(lab.memory());
      assertThat(ns.getLong(IdentifyNamespace.NSZE)).isEqualTo(16);
      assertThat(ns.getInt(IdentifyNamespace.FLBAS)).isEqualTo(1);
      long eui64 = ns.eui64();
      writeFirstBlock(lab, 3);

      lab.host.adminOk(lab.deleteNamespace(3));
      assertThat(active(lab)).containsExactly(1, 2);
      create = lab.createNamespace();
      assertThat(lab.host.adminOk(create)).isEqualTo(3);
      lab.host.adminOk(lab.attach(3, 0));
      assertThat(firstBlockIsZero(lab, 3)).isTrue();
      lab.host.adminOk(lab.identify(Cns.NAMESPACE, 3));
      assertThat(new IdentifyNamespace(lab.memory()).eui64())
          .as("another namespace, another identifier")
          .isNotEqualTo(eui64);
    }
  }

  @Test
  void allNamespacesAreDeletedAtOnce() {
    try (CommandLab lab = new CommandLab()) {
      lab.host.adminOk(lab.deleteNamespace(Sqe.NSID_ALL));
      assertThat(active(lab)).isEmpty();
      assertThat(lab.host.adminOk(lab.createNamespace())).isEqualTo(1);
      lab.host.adminOk(lab.identifyController());
      IdentifyController c = new IdentifyController(lab.memory());
      assertThat(c.getLong(IdentifyController.TNVMCAP) - c.getLong(IdentifyController.UNVMCAP))
          .isEqualTo(8 * 512);
    }
  }

  @Test
  void anAttachedNamespaceOutlivesAReset() {
    try (CommandLab lab = new CommandLab()) {
      lab.host.adminOk(lab.createNamespace());
      lab.host.adminOk(lab.attach(3, 0));
      lab.host.disable();
      lab.host.enable();
      assertThat(active(lab)).containsExactly(1, 2, 3);
    }
  }

  @Test
  void keepAliveKeepsAlive() {
    AtomicLong now = new AtomicLong();
    SimConfig config = SimConfig.builder().workers(0).latencyNanos(0).keepAlive(true).build();
    try (RawHost host = RawHost.attach(SimulatedController.create(config, now::get))) {
      host.enable();
      host.adminOk(RawHost.sqe(0x09, 0, 0, 0, FeatureId.KEEP_ALIVE_TIMER, 500, 0));
      for (int i = 0; i < 5; i++) {
        now.addAndGet(400_000_000);
        host.adminOk(RawHost.sqe(0x18, 0, 0, 0, 0, 0, 0));
      }
      assertThat(host.csts().isSet(Csts.CFS)).isFalse();
      now.addAndGet(600_000_000);
      host.settle();
      assertThat(host.csts().isSet(Csts.CFS)).as("the host was silent").isTrue();
    }
  }
}
