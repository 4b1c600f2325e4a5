package io.gpunvme.tools.ssd;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.ByteRange;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.storage.BlockRun;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Blocks of two SSDs that are overwritten and put back. */
@Timeout(120)
class BorrowedBlocksTest {
  private static final int BYTES = 2 << 20;
  private static final ByteRange RANGE = new ByteRange(100_000 / 512 * 512, 1 << 20);

  @TempDir Path folder;
  private Path work;
  private byte[] first;
  private byte[] second;

  @BeforeEach
  void fill() throws IOException {
    work = Files.createDirectory(folder.resolve("it's work"));
    first = image("first", 1);
    second = image("second", 2);
  }

  private byte[] image(String name, int seed) throws IOException {
    byte[] bytes = new byte[BYTES];
    new Random(seed).nextBytes(bytes);
    Files.write(folder.resolve(name), bytes);
    return bytes;
  }

  /** Whatever a test does, and whoever has to put back what. */
  @AfterEach
  void everythingIsThereAgain() {
    assertThat(folder.resolve("first")).hasBinaryContent(first);
    assertThat(folder.resolve("second")).hasBinaryContent(second);
  }

  private Ssds open(String secondsOptions) {
    String set =
        "stripe:sim:latency=0,file=%s,sim:latency=0%s,file=%s;unit=64KiB"
            .formatted(folder.resolve("first"), secondsOptions, folder.resolve("second"));
    ControllerOptions writing = ControllerOptions.builder().allowWrite(true).build();
    return Ssds.open(set, writing, "", 1);
  }

  private static void overwrite(List<BlockRun> runs) throws IOException {
    try (CpuAccelerator host = CpuAccelerator.open()) {
      for (List<BlockRun> own : Ssds.bySsd(runs)) {
        BlockRun one = own.getFirst();
        byte[] other = new byte[(int) Ssds.bytes(own)];
        try (BlockMover mover =
            BlockMover.open(
                one.controller(),
                one.namespace(),
                host,
                InitiatorOptions.defaults(),
                other.length,
                64 << 10,
                TransferListener.NONE)) {
          mover.write(new ByteArrayInputStream(other), own, other.length, new Checksum());
        }
      }
    }
  }

  private boolean untouched() throws IOException {
    return Arrays.equals(Files.readAllBytes(folder.resolve("first")), first)
        || Arrays.equals(Files.readAllBytes(folder.resolve("second")), second);
  }

  @Test
  void allSsdsHaveTheirsBack() throws IOException {
    try (Ssds ssds = open("")) {
      List<BlockRun> runs = ssds.blocksToWrite(RANGE);
      BorrowedBlocks borrowed = BorrowedBlocks.borrow(runs, work, BorrowListener.NONE);
      assertThat(borrowed.bytes()).isEqualTo(RANGE.bytes());
      assertThat(work.resolve("borrowed.blocks")).hasSize(RANGE.bytes());
      borrowed.during(
          () -> {
            overwrite(runs);
            assertThat(untouched()).isFalse();
            return null;
          });
    }
    assertThat(work).isEmptyDirectory();
  }

  @Test
  void alsoIfTheWorkFails() throws IOException {
    try (Ssds ssds = open("")) {
      List<BlockRun> runs = ssds.blocksToWrite(RANGE);
      BorrowedBlocks borrowed = BorrowedBlocks.borrow(runs, work, BorrowListener.NONE);
      assertThatExceptionOfType(IOException.class)
          .isThrownBy(
              () ->
                  borrowed.during(
                      () -> {
                        overwrite(runs);
                        throw new IOException("no more");
                      }))
          .withMessage("no more");
    }
  }

  @Test
  void nothingIsBorrowedIfTheListenerDoesNotWantIt() throws IOException {
    BorrowListener unwilling =
        new BorrowListener() {
          @Override
          public void begin(Step step, long bytes) {}

          @Override
          public void moved(long bytes) {}

          @Override
          public boolean isCancelled() {
            return true;
          }
        };
    try (Ssds ssds = open("")) {
      List<BlockRun> runs = ssds.blocksToWrite(RANGE);
      assertThatExceptionOfType(CommandAbortedException.class)
          .isThrownBy(() -> BorrowedBlocks.borrow(runs, work, unwilling));
    }
  }

  /** Of a file on a set the first bytes may be on any member. */
  @Test
  void theScriptNamesTheSsdOfEachBlock() throws IOException {
    try (Ssds ssds = open("")) {
      BorrowedBlocks borrowed =
          BorrowedBlocks.borrow(ssds.blocksToWrite(RANGE).reversed(), work, BorrowListener.NONE);
      Path script = work.resolve("put-back.sh");
      assertThat(script).doesNotExist();
      borrowed.during(
          () -> {
            assertThat(BorrowedBlocks.missing(work)).contains(script);
            List<String> puts =
                Files.readAllLines(script).stream().filter(l -> l.startsWith("put '")).toList();
            assertThat(puts).hasSize(2);
            List<BlockRun> runs = ssds.blocksToWrite(RANGE).reversed();
            for (int i = 0; i < 2; i++) {
              NvmeController controller = Ssds.controllers(runs).get(i);
              assertThat(puts.get(i))
                  .startsWith("put '" + Device.addressOf(controller).orElseThrow() + "'")
                  .contains(
                      Ssds.controllers(ssds.blocks(null)).getFirst() == controller
                          ? folder.resolve("first").toString()
                          : folder.resolve("second").toString());
            }
            return null;
          });
      assertThat(BorrowedBlocks.missing(work)).isEmpty();
    }
  }

  /** The second SSD takes what it is given by the work, and no more. */
  @Test
  void whatOneSsdDoesNotTakeAScriptPutsBack() throws Exception {
    String refusing = ",mdts=64KiB,faults=status=media/write-fault dnr on write after=12";
    try (Ssds ssds = open(refusing)) {
      List<BlockRun> runs = ssds.blocksToWrite(RANGE);
      BorrowedBlocks borrowed = BorrowedBlocks.borrow(runs, work, BorrowListener.NONE);
      assertThatExceptionOfType(NotRestoredException.class)
          .isThrownBy(
              () ->
                  borrowed.during(
                      () -> {
                        overwrite(runs);
                        throw new IllegalStateException("the work failed, too");
                      }))
          .withMessageContaining("Write Fault")
          .withMessageContaining("sh " + work.resolve("put-back.sh") + " puts it back")
          .satisfies(e -> assertThat(e.copy()).isEqualTo(work.resolve("borrowed.blocks")))
          .satisfies(e -> assertThat(e.getSuppressed()).hasSize(1));
    }
    assertThat(folder.resolve("first")).hasBinaryContent(first);
    assertThat(Files.readAllBytes(folder.resolve("second"))).isNotEqualTo(second);
    runScript();
    assertThat(work.resolve("part.blocks")).doesNotExist();
  }

  /** In place of the command: writes the file where it is told. */
  private void runScript() throws Exception {
    Path command =
        Files.writeString(
            folder.resolve("command"),
            """
            #!/bin/bash
            set -e
            [ "$1 $3 $4 $5 $7 $9" = "write --nsid 1 --lba --in --allow-write" ]
            image=${2##*file=}
            dd if="$8" of="$image" bs=512 seek="$6" conv=notrunc status=none
            """);
    Files.setPosixFilePermissions(command, PosixFilePermissions.fromString("rwx------"));
    ProcessBuilder sh =
        new ProcessBuilder("sh", work.resolve("put-back.sh").toString()).redirectErrorStream(true);
    sh.environment().put("GPUNVME", command.toString());
    Process process = sh.start();
    String said = new String(process.getInputStream().readAllBytes());
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).as(said).isZero();
  }
}
