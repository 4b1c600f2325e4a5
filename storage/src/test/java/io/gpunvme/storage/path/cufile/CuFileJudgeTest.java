package io.gpunvme.storage.path.cufile;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.ComputeCapability;
import io.gpunvme.storage.Explanation;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Verdict;
import io.gpunvme.testing.FakeMachine;
import io.gpunvme.testing.NativeCompiler;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Predicate;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class CuFileJudgeTest {
  private static final ComputeCapability HOPPER = new ComputeCapability(9, 0);
  private static final String LIBRARY = "usr/local/cuda/lib64/libcufile.so.0";
  private static final String RECORD = "E:ID_FS_USAGE=filesystem\nE:ID_FS_TYPE=ext4\n";

  @TempDir private Path folder;
  private FakeMachine machine;
  private Path file;
  private Predicate<Path> readable = Files::isReadable;
  private Map<String, String> environment = Map.of();
  private Optional<String> own = Optional.empty();

  @BeforeEach
  void everythingIsThere() throws IOException {
    Path real = folder.toRealPath();
    file = Files.writeString(real.resolve("data"), "some bytes");
    machine =
        new FakeMachine(real.resolve("machine"))
            .write(LIBRARY, "never opened")
            .write("proc/self/mountinfo", "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n")
            .write("run/udev/data/b254:0", "S:disk/by-id/x\n" + RECORD)
            .folder("sys/module/nvidia_fs");
  }

  private Verdict judge() {
    return judge("NVIDIA H200", HOPPER);
  }

  private Verdict judge(String gpu, ComputeCapability capability) {
    return CuFilePath.judge(
        file.toString(),
        gpu,
        capability,
        new CuFileHost(machine.paths(), machine.root(), environment, readable, own));
  }

  private void mount(String number, String type) {
    machine.mount(number, "none", folder.toAbsolutePath().toString(), type);
  }

  private static void assertNo(Verdict verdict, String reason, String fix) {
    assertThat(verdict.kind()).isEqualTo(PathKind.CUFILE);
    assertThat(verdict.possible()).as("%s", verdict).isFalse();
    assertThat(verdict.reason()).contains(reason);
    assertThat(verdict.fix()).contains(fix);
    assertThat(
            new Explanation("auto", "it is best", List.of(verdict), Map.of(), Map.of()).toString())
        .contains("cufile no", verdict.reason(), verdict.fix());
  }

  @Test
  void aFileOnExt4ThatUdevKnowsIsFine() {
    assertThat(judge().possible()).as("%s", judge()).isTrue();
    assertThat(judge().automatic()).isTrue();
    assertThat(judge().reason())
        .isEqualTo("libcufile is " + machine.root().resolve(LIBRARY) + "; ext4");
  }

  @Test
  void withoutItsKernelModuleItIsThereByNameOnly() throws IOException {
    Files.delete(machine.root().resolve("sys/module/nvidia_fs"));
    Verdict verdict = judge();
    assertThat(verdict.possible()).isTrue();
    assertThat(verdict.automatic()).isFalse();
    assertThat(verdict.reason()).contains("; ext4; nvidia-fs is not loaded", "host memory");
    assertThat(verdict.fix()).contains("modprobe nvidia-fs");
  }

  @Test
  void theLibraryIsMissing() throws IOException {
    Files.delete(machine.root().resolve(LIBRARY));
    assertNo(judge(), "libcufile.so.0 is not in the usual places", "libcufile-13-0");
  }

  @Test
  void gpunvmesOwnLibraryIsNotMeant() throws IOException {
    Path ours =
        NativeCompiler.C.library(
            "own", "const char *gpunvme_cufile_version(void) { return \"0\"; }");
    Path found = folder.toRealPath().resolve("libcufile.so.0");
    Files.copy(ours, found);
    environment = Map.of("LD_LIBRARY_PATH", found.getParent().toString());
    assertThat(judge().reason()).as("NVIDIA's is behind it").contains(LIBRARY);
    Files.delete(machine.root().resolve(LIBRARY));
    assertNo(
        judge(), "the libcufile found is gpunvme's own at " + found, "install NVIDIA's (package");
  }

  @Test
  void besideGpunvmesOwnLibraryNvidiasDoesNotWork() {
    own = Optional.of("/opt/ours.so");
    assertNo(
        judge(),
        "this process has loaded gpunvme's own libcufile (/opt/ours.so), and NVIDIA's does not work"
            + " beside it",
        "start it without gpunvme cufile");
  }

  @Test
  void theGpuIsNotSupported() {
    assertNo(
        judge("NVIDIA GeForce RTX 4090", new ComputeCapability(8, 9)),
        "does not support NVIDIA GeForce RTX 4090",
        "path pinned");
    assertNo(
        judge("Tesla M60", new ComputeCapability(5, 2)),
        "does not support Tesla M60: its compute capability is 5.2",
        "path pinned");
  }

  @Test
  void udevHasNoRecord() throws IOException {
    Path record = machine.root().resolve("run/udev/data/b254:0");
    Files.writeString(record, "E:ID_FS_TYPE=ext4\nG:systemd\n");
    assertNo(judge(), "udev has no record of the file system on /dev/vda", "udevadm trigger");
    Files.delete(record);
    assertNo(judge(), "/run/udev/data/b254:0", "E:ID_FS_TYPE=ext4\\n' > /run/udev/data/b254:0");
  }

  @Test
  void theMountThatCountsIsTheDeepestAndTheLast() {
    machine.mount("254:7", "/dev/vdb", folder.toAbsolutePath().toString(), "ext4");
    assertNo(judge(), "/dev/vdb (/run/udev/data/b254:7)", "--name-match=/dev/vdb");
    machine.mount("254:0", "/dev/vda", folder.toAbsolutePath().toString(), "xfs");
    assertThat(judge().possible()).isTrue();
    assertThat(judge().reason()).endsWith("; xfs");
  }

  @Test
  void theFileSystemHasNoBlockDevice() {
    mount("0:23", "tmpfs");
    assertNo(judge(), "tmpfs at " + folder, "ext4 or XFS");
    mount("0:99", "overlay");
    assertNo(judge(), "overlay at " + folder, "ext4 or XFS");
    mount("0:50", "nfs4");
    assertThat(judge().possible()).as("cuFile knows it").isTrue();
  }

  @Test
  void otherFileSystemsAreTriedWithAWord() {
    mount("254:0", "f2fs");
    assertThat(judge().possible()).isTrue();
    assertThat(judge().reason()).contains("f2fs, which cuFile copies through host memory");
  }

  @Test
  void theFileIsNone() {
    file = folder.resolve("none");
    assertNo(judge(), "there is no file", "");
    file = folder;
    assertNo(judge(), "is not a regular file", "");
  }

  @Test
  void theFileMayNotBeRead() {
    readable = path -> !path.equals(file);
    assertNo(judge(), "this user may not read " + file, "chmod a+r '" + file + "'");
  }

  @Test
  void theFilesOwnPermissionsCount() throws IOException {
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("---------"));
    Assumptions.assumeFalse(Files.isReadable(file), "root reads everything");
    assertNo(judge(), "may not read", "chmod a+r");
  }

  @Test
  void theMachineAloneIsJudgedToo() {
    CuFileHost host = new CuFileHost(machine.paths(), machine.root(), Map.of());
    assertThat(CuFilePath.judgeMachine("NVIDIA H200", HOPPER, host).possible()).isTrue();
    assertNo(CuFilePath.judgeMachine("GeForce GTX", HOPPER, host), "GeForce GTX", "pinned");
  }
}
