package io.gpunvme.tools.machine;

import static io.gpunvme.testing.FakeMachine.pci;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.testing.FakeMachine;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DiskUseTest {
  private static final String SSD = "0000:01:00.0";

  @TempDir Path root;
  private FakeMachine fake;

  @BeforeEach
  void anSsdWithTwoPartitions() {
    fake = new FakeMachine(root).ssd("", SSD, 0);
    fake.partition("nvme0n1", "nvme0n1p1", "259:1").partition("nvme0n1", "nvme0n1p2", "259:2");
  }

  private List<String> uses() {
    return DiskUse.of(FakeMachines.read(fake), pci(SSD));
  }

  @Test
  void nobodyUsesIt() {
    assertThat(uses()).isEmpty();
    DiskUse.requireFree(FakeMachines.read(fake), pci(SSD));
  }

  @Test
  void theRootDisk() {
    fake.mount("259:2", "/dev/nvme0n1p2", "/", "ext4");

    assertThat(uses()).containsExactly("/dev/nvme0n1p2 is mounted at /, the root file system");
    assertThatThrownBy(() -> DiskUse.requireFree(FakeMachines.read(fake), pci(SSD)))
        .isInstanceOf(InvalidRequestException.class)
        .hasMessageContaining(SSD)
        .hasMessageContaining("/dev/nvme0n1p2 is mounted at /");
  }

  /** Containers show devices under other names; the numbers stay. */
  @Test
  void aMountIsFoundByItsNumber() {
    fake.mount("259:1", "/dev/root", "/data", "xfs");

    assertThat(uses()).containsExactly("/dev/nvme0n1p1 is mounted at /data");
  }

  /** Btrfs invents numbers; the name stays. */
  @Test
  void aMountIsFoundByItsName() {
    fake.mount("0:44", "/dev/nvme0n1", "/with\\040blank", "btrfs");
    fake.folder("sys/fs/btrfs/uuid/devices/nvme0n1");
    fake.folder("sys/fs/btrfs/uuid/devices/nvme0n1p2");

    assertThat(uses())
        .containsExactly(
            "/dev/nvme0n1 is mounted at /with blank", "/dev/nvme0n1p2 is part of a mounted btrfs");
  }

  @Test
  void aMountOfTheFirstProcessCounts() {
    fake.write("proc/1/mountinfo", "9 1 259:1 / /host rw - ext4 /dev/nvme0n1p1 rw\n");

    assertThat(uses()).containsExactly("/dev/nvme0n1p1 is mounted at /host");
  }

  @Test
  void procMountsIsEnough() {
    fake.write("proc/mounts", "/dev/nvme0n1p1 /data ext4 rw 0 0\n");

    assertThat(uses()).containsExactly("/dev/nvme0n1p1 is mounted at /data");
  }

  @Test
  void swapIsAUse() {
    fake.append(
        "proc/swaps", "/dev/nvme0n1p2                          partition\t8388604\t0\t-2\n");

    assertThat(uses()).containsExactly("/dev/nvme0n1p2 is in use as swap");
  }

  @Test
  void aMemberOfAnArrayAndWhatIsOnTheArray() {
    fake.disk("md0", "9:0").write("sys/block/md0/md/level", "raid1\n");
    fake.partition("md0", "md0p1", "259:9").holder("nvme0n1/nvme0n1p1", "md0");
    fake.mount("259:9", "/dev/md0p1", "/srv", "ext4");

    assertThat(uses())
        .containsExactly(
            "/dev/nvme0n1p1 is a member of md0 (raid1)", "/dev/md0p1 is mounted at /srv");
  }

  @Test
  void layersOfTheDeviceMapper() {
    fake.disk("dm-0", "253:0").write("sys/block/dm-0/dm/name", "crypt\n");
    fake.disk("dm-1", "253:1").write("sys/block/dm-1/dm/name", "vg0-swap\n");
    fake.write("sys/block/dm-1/dm/uuid", "LVM-abc\n");
    fake.holder("nvme0n1/nvme0n1p2", "dm-0").holder("dm-0", "dm-1");
    fake.linkTo("dev/mapper/vg0-swap", Path.of("../dm-1"));
    fake.append("proc/swaps", "/dev/mapper/vg0-swap partition 1 0 -2\n");

    assertThat(uses())
        .containsExactly(
            "/dev/nvme0n1p2 is held by dm-0 (crypt)",
            "/dev/dm-0 is held by dm-1 (LVM vg0-swap)",
            "/dev/dm-1 is in use as swap");
  }

  @Test
  void holdersThatHoldEachOtherEnd() {
    fake.disk("dm-0", "253:0").holder("nvme0n1", "dm-0").holder("dm-0", "dm-0");

    assertThat(uses()).hasSize(2);
  }

  @Test
  void aMemberThatNobodyPutTogether() {
    fake.write("run/udev/data/b259:1", "S:disk/by-id/x\nE:ID_FS_TYPE=LVM2_member\n");
    fake.write("run/udev/data/b259:2", "E:ID_FS_TYPE=ext4\n");

    assertThat(uses()).containsExactly("/dev/nvme0n1p1 is a LVM2_member that is not assembled");
  }

  @Test
  void aProcessThatHasItOpen() {
    fake.opener(812, "qemu-system-x86", "/dev/nvme0n1");
    fake.opener(813, "nvme", "/dev/nvme0").opener(814, "fio", "/dev/ng0n1");
    fake.opener(815, "other", "/dev/nvme1n1");

    assertThat(uses())
        .containsExactlyInAnyOrder(
            "/dev/nvme0n1 is open in process 812 (qemu-system-x86)",
            "/dev/nvme0 is open in process 813 (nvme)",
            "/dev/ng0n1 is open in process 814 (fio)");
  }

  @Test
  void aProcessThatDrivesItThroughVfio() {
    fake = new FakeMachine(root.resolve("vfio")).function("", SSD, FakeMachine.NVME, 0x144D);
    fake.driver(SSD, "vfio-pci").group("12", "DMA", SSD);
    assertThat(uses()).isEmpty();

    fake.opener(77, "java", "/dev/vfio/12").opener(78, "java", "/dev/vfio/13");
    assertThat(uses()).containsExactly("/dev/vfio/12 is open in process 77 (java)");

    fake.folder(FakeMachine.at(SSD) + "/vfio-dev/vfio3");
    fake.opener(79, "java", "/dev/vfio/devices/vfio3").opener(80, "java", "/dev/vfio/noiommu-12");
    assertThat(uses())
        .contains(
            "/dev/vfio/devices/vfio3 is open in process 79 (java)",
            "/dev/vfio/noiommu-12 is open in process 80 (java)");
  }

  @Test
  void theDisksOfOthersDoNotCount() {
    fake.ssd("", "0000:02:00.0", 1).mount("259:10", "/dev/nvme1n1", "/", "ext4");

    assertThat(uses()).isEmpty();
    assertThat(DiskUse.of(FakeMachines.read(fake), pci("0000:02:00.0"))).hasSize(1);
  }
}
