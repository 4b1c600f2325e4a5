package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.spec.ActiveNamespaceList;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.IdentifyNamespace;
import io.gpunvme.nvme.spec.NamespaceDescriptors;
import io.gpunvme.nvme.spec.PowerStateDescriptor;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.Vs;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** What Identify says. */
class IdentifyDataTest {
  private static MemorySegment identify(CommandLab lab, int cns, int nsid) {
    lab.memory().fill((byte) 0xEE);
    lab.host.adminOk(lab.identify(cns, nsid));
    return lab.memory();
  }

  @Test
  void theControllerIsWhatWasConfigured() {
    try (CommandLab lab = new CommandLab(b -> b.serial("S-42").model("Model X").firmware("F1"))) {
      IdentifyController c = new IdentifyController(identify(lab, Cns.CONTROLLER, 0));

      assertThat(c.getInt(IdentifyController.VID)).isEqualTo(SimConfigSpace.VENDOR);
      assertThat(c.getText(IdentifyController.SN)).isEqualTo("S-42");
      assertThat(c.getText(IdentifyController.MN)).isEqualTo("Model X");
      assertThat(c.getText(IdentifyController.FR)).isEqualTo("F1");
      assertThat(c.getInt(IdentifyController.MDTS)).isEqualTo(4);
      assertThat(c.getInt(IdentifyController.CNTLID)).isEqualTo(IdentifyData.CONTROLLER_ID);
      assertThat(c.getInt(IdentifyController.VER)).isEqualTo(0x10400);
      assertThat(c.getInt(IdentifyController.OAES)).isEqualTo(1 << 8);
      assertThat(c.getInt(IdentifyController.CNTRLTYPE)).isEqualTo(1);
      assertThat(c.getInt(IdentifyController.OACS)).isEqualTo(1 << 1 | 1 << 3 | 1 << 8);
      assertThat(c.getInt(IdentifyController.ACL)).isEqualTo(3);
      assertThat(c.getInt(IdentifyController.AERL)).isEqualTo(1);
      assertThat(c.getInt(IdentifyController.FRMW)).isEqualTo(3);
      assertThat(c.getInt(IdentifyController.LPA)).isEqualTo(6);
      assertThat(c.getInt(IdentifyController.ELPE)).isEqualTo(63);
      assertThat(c.getInt(IdentifyController.NPSS)).isZero();
      assertThat(c.psd(0).getInt(PowerStateDescriptor.MP)).isPositive();
      assertThat(c.getInt(IdentifyController.WCTEMP)).isEqualTo(343);
      assertThat(c.getInt(IdentifyController.CCTEMP)).isGreaterThan(343);
      assertThat(c.getLong(IdentifyController.HMPRE)).isEqualTo(4);
      assertThat(c.getLong(IdentifyController.HMMIN)).isEqualTo(2);
      assertThat(c.getLong(IdentifyController.TNVMCAP))
          .isEqualTo(2 * CommandLab.BLOCKS * 512 + Namespaces.SPARE);
      assertThat(c.getLong(IdentifyController.UNVMCAP)).isEqualTo(Namespaces.SPARE);
      assertThat(c.getInt(IdentifyController.KAS)).isEqualTo(1);
      assertThat(c.getInt(IdentifyController.SQES)).isEqualTo(0x66);
      assertThat(c.getInt(IdentifyController.CQES)).isEqualTo(0x44);
      assertThat(c.getLong(IdentifyController.NN)).isEqualTo(CommandLab.NN);
      assertThat(c.getInt(IdentifyController.ONCS)).isEqualTo(0x1DF);
      assertThat(c.getInt(IdentifyController.FUSES)).isZero();
      assertThat(c.getInt(IdentifyController.FNA)).isZero();
      assertThat(c.getInt(IdentifyController.VWC)).isEqualTo(7);
      assertThat(c.getInt(IdentifyController.SGLS)).isEqualTo(1 | 1 << 16);
      assertThat(c.getText(IdentifyController.SUBNQN))
          .startsWith("nqn.2014-08.org.nvmexpress:uuid:");
      byte[] sn = lab.memory().asSlice(4, 20).toArray(ValueLayout.JAVA_BYTE);
      assertThat(sn[4]).as("padded with spaces").isEqualTo((byte) ' ');
    }
  }

  @Test
  void whatIsSwitchedOffIsNotAdvertised() {
    try (CommandLab lab =
        new CommandLab(
            b ->
                b.sgl(false)
                    .dbbuf(false)
                    .namespaceManagement(false)
                    .keepAlive(false)
                    .volatileWriteCache(false)
                    .maxTransfer(0)
                    .hmbMinimum(0)
                    .hmbPreferred(0)
                    .version(Vs.V2_0))) {
      IdentifyController c = new IdentifyController(identify(lab, Cns.CONTROLLER, 0));

      assertThat(c.getInt(IdentifyController.SGLS)).isZero();
      assertThat(c.getInt(IdentifyController.OACS)).isEqualTo(1 << 1);
      assertThat(c.getInt(IdentifyController.KAS)).isZero();
      assertThat(c.getInt(IdentifyController.VWC) & 1).isZero();
      assertThat(c.getInt(IdentifyController.MDTS)).isZero();
      assertThat(c.getLong(IdentifyController.HMPRE)).isZero();
      assertThat(c.getInt(IdentifyController.HMMAXD)).isZero();
      assertThat(c.getLong(IdentifyController.TNVMCAP)).isEqualTo(2 * CommandLab.BLOCKS * 512);
      assertThat(c.getLong(IdentifyController.UNVMCAP)).isZero();
      assertThat(c.getInt(IdentifyController.VER)).isEqualTo(0x20000);
      assertThat(c.getInt(IdentifyController.LPA)).isEqualTo(6 | 1 << 5);
      assertThat(c.getLong(IdentifyController.MNAN)).isEqualTo(CommandLab.NN);
    }
  }

  @Test
  void aNamespace() {
    try (CommandLab lab = new CommandLab(b -> b.namespace(NamespaceConfig.ram(1 << 20, 4096)))) {
      IdentifyNamespace ns = new IdentifyNamespace(identify(lab, Cns.NAMESPACE, 1));

      assertThat(ns.getLong(IdentifyNamespace.NSZE)).isEqualTo(CommandLab.BLOCKS);
      assertThat(ns.getLong(IdentifyNamespace.NCAP)).isEqualTo(CommandLab.BLOCKS);
      assertThat(ns.getLong(IdentifyNamespace.NUSE)).isEqualTo(CommandLab.BLOCKS);
      assertThat(ns.getLong(IdentifyNamespace.NVMCAP)).isEqualTo(CommandLab.BLOCKS * 512);
      assertThat(ns.getInt(IdentifyNamespace.FLBAS)).isZero();
      assertThat(ns.getInt(IdentifyNamespace.NLBAF)).isEqualTo(7);
      assertThat(ns.lbaf(0).lbads()).isEqualTo(9);
      assertThat(ns.lbaf(1).lbads()).isEqualTo(12);
      assertThat(ns.lbaf(7).lbads()).isEqualTo(16);
      assertThat(ns.lbaf(8).lbads()).isZero();
      assertThat(ns.getInt(IdentifyNamespace.DLFEAT)).isEqualTo(9);
      assertThat(ns.getInt(IdentifyNamespace.NSATTR)).isZero();
      assertThat(ns.getInt(IdentifyNamespace.MSRC)).isEqualTo(127);
      assertThat(ns.eui64()).isNotZero();
      long eui64 = ns.eui64();
      byte[] nguid = ns.getBytes(IdentifyNamespace.NGUID);

      ns = new IdentifyNamespace(identify(lab, Cns.NAMESPACE, 2));
      assertThat(ns.getInt(IdentifyNamespace.NSATTR)).as("write protected").isEqualTo(1);
      assertThat(ns.eui64()).isNotEqualTo(eui64);
      assertThat(Arrays.equals(ns.getBytes(IdentifyNamespace.NGUID), nguid)).isFalse();

      ns = new IdentifyNamespace(identify(lab, Cns.NAMESPACE, 3));
      assertThat(ns.getLong(IdentifyNamespace.NSZE)).isEqualTo(256);
      assertThat(ns.lbaf(ns.getInt(IdentifyNamespace.FLBAS)).lbads()).isEqualTo(12);
    }
  }

  @Test
  void identifiersAreTheSameAfterARestart() {
    long[] seen = new long[2];
    for (int i = 0; i < 2; i++) {
      try (CommandLab lab = new CommandLab()) {
        seen[i] = new IdentifyNamespace(identify(lab, Cns.NAMESPACE, 1)).eui64();
      }
    }
    assertThat(seen[0]).isEqualTo(seen[1]);
  }

  @Test
  void anInactiveNamespaceIsZeros() {
    try (CommandLab lab = new CommandLab()) {
      for (int cns : new int[] {Cns.NAMESPACE, Cns.ALLOCATED_NAMESPACE}) {
        MemorySegment data = identify(lab, cns, CommandLab.INACTIVE);
        assertThat(data.asSlice(0, 4096).mismatch(MemorySegment.ofArray(new byte[4096])))
            .isEqualTo(-1);
        assertThat(data.get(ValueLayout.JAVA_BYTE, 4096)).as("no more").isEqualTo((byte) 0xEE);
      }
    }
  }

  @Test
  void allNamespacesHaveTheirCapabilitiesInCommon() {
    try (CommandLab lab = new CommandLab()) {
      IdentifyNamespace ns = new IdentifyNamespace(identify(lab, Cns.NAMESPACE, Sqe.NSID_ALL));
      assertThat(ns.getLong(IdentifyNamespace.NSZE)).isZero();
      assertThat(ns.getInt(IdentifyNamespace.NLBAF)).isEqualTo(7);
      assertThat(ns.lbaf(1).lbads()).isEqualTo(12);
    }
  }

  private static int[] ids(CommandLab lab, int cns, int after) {
    return new ActiveNamespaceList(identify(lab, cns, after)).stream().toArray();
  }

  @Test
  void listsStartBehindTheirNsid() {
    try (CommandLab lab = new CommandLab()) {
      assertThat(ids(lab, Cns.ACTIVE_NAMESPACES, 0)).containsExactly(1, 2);
      assertThat(ids(lab, Cns.ACTIVE_NAMESPACES, 1)).containsExactly(2);
      assertThat(ids(lab, Cns.ACTIVE_NAMESPACES, 2)).isEmpty();
      assertThat(ids(lab, Cns.ACTIVE_NAMESPACES, 0xFFFF_FFFD)).isEmpty();
      lab.host.adminOk(lab.attach(1, 1));
      assertThat(ids(lab, Cns.ACTIVE_NAMESPACES, 0)).containsExactly(2);
      assertThat(ids(lab, Cns.ALLOCATED_NAMESPACES, 0)).containsExactly(1, 2);
    }
  }

  @Test
  void descriptorsNameTheNamespaceFourTimes() {
    try (CommandLab lab = new CommandLab()) {
      IdentifyNamespace ns = new IdentifyNamespace(identify(lab, Cns.NAMESPACE, 1));
      long eui64 = Long.reverseBytes(ns.eui64());
      byte[] nguid = ns.getBytes(IdentifyNamespace.NGUID);

      NamespaceDescriptors d =
          new NamespaceDescriptors(identify(lab, Cns.NAMESPACE_DESCRIPTORS, 1));

      assertThat(d.list())
          .extracting(NamespaceDescriptors.Descriptor::type)
          .containsExactly(1, 2, 3, 4);
      assertThat(d.list().get(0).id().get(ValueLayout.JAVA_LONG_UNALIGNED, 0)).isEqualTo(eui64);
      assertThat(d.list().get(1).id().toArray(ValueLayout.JAVA_BYTE)).isEqualTo(nguid);
      assertThat(d.list().get(2).id().byteSize()).isEqualTo(16);
      assertThat(d.list().get(3).id().toArray(ValueLayout.JAVA_BYTE)).containsExactly(0);
    }
  }

  @Test
  void controllerListsNameTheOneController() {
    try (CommandLab lab = new CommandLab()) {
      MemorySegment list = identify(lab, Cns.SUBSYSTEM_CONTROLLERS, 0);
      assertThat(list.get(ValueLayout.JAVA_SHORT, 0)).isEqualTo((short) 1);
      assertThat(list.get(ValueLayout.JAVA_SHORT, 2)).isEqualTo((short) IdentifyData.CONTROLLER_ID);
      list = identify(lab, Cns.SUBSYSTEM_CONTROLLERS | (IdentifyData.CONTROLLER_ID + 1) << 16, 0);
      assertThat(list.get(ValueLayout.JAVA_SHORT, 0)).as("CNTID starts behind it").isZero();
      list = identify(lab, Cns.ATTACHED_CONTROLLERS, 1);
      assertThat(list.get(ValueLayout.JAVA_SHORT, 0)).isEqualTo((short) 1);
      lab.host.adminOk(lab.attach(1, 1));
      list = identify(lab, Cns.ATTACHED_CONTROLLERS, 1);
      assertThat(list.get(ValueLayout.JAVA_SHORT, 0)).isZero();
    }
  }

  @Test
  void version2HasTheCommandSetIndependentStructures() {
    try (CommandLab lab = new CommandLab(b -> b.version(Vs.V2_0))) {
      MemorySegment data = identify(lab, Cns.CSI_INDEPENDENT_NAMESPACE, 2);
      assertThat(data.get(ValueLayout.JAVA_BYTE, 8)).as("NSATTR").isEqualTo((byte) 1);
      assertThat(data.get(ValueLayout.JAVA_BYTE, 14)).as("NSTAT").isEqualTo((byte) 1);
      MemorySegment zeros = MemorySegment.ofArray(new byte[4096]);
      assertThat(identify(lab, Cns.CSI_NAMESPACE, 1).asSlice(0, 4096).mismatch(zeros))
          .isEqualTo(-1);
      assertThat(identify(lab, Cns.CSI_CONTROLLER, 0).asSlice(0, 4096).mismatch(zeros))
          .isEqualTo(-1);
    }
  }

  @Test
  void theDataMayCrossAPage() {
    try (CommandLab lab = new CommandLab()) {
      MemorySegment s = lab.identifyController();
      Sqe.dptr1(s, 0, lab.bus() + 4096 - 64);
      Sqe.dptr2(s, 0, lab.bus() + 8192);
      lab.host.adminOk(s);
      MemorySegment.copy(lab.memory(), 8192, lab.memory(), 4096, 4032);
      assertThat(
              new IdentifyController(lab.memory().asSlice(4096 - 64, 4096))
                  .getInt(IdentifyController.SQES))
          .isEqualTo(0x66);
    }
  }
}
