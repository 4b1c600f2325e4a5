package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.spec.ErrorLogEntry;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Every command, every field that can be wrong, and the status that must come of it: code type,
 * code and Do Not Retry, with the section of the specification. The rows are in the {@code
 * Malformed…Rows} classes; each starts from a command that {@link #everyExampleIsValid} proves
 * valid and changes one thing.
 */
class MalformedCommandTableTest {
  static Stream<MalformedRow> rows() {
    return Stream.of(
            MalformedReservedRows.rows(),
            MalformedAdminRows.rows(),
            MalformedFeatureRows.rows(),
            MalformedIoRows.rows(),
            MalformedPointerRows.rows())
        .flatMap(r -> r);
  }

  @ParameterizedTest
  @EnumSource(Example.class)
  void everyExampleIsValid(Example example) {
    try (CommandLab lab = new CommandLab()) {
      MemorySegment sqe = example.command.apply(lab);
      if (example == Example.ASYNC_EVENT_REQUEST) {
        lab.host.admin.push(sqe);
        lab.host.admin.ring();
        lab.host.settle();
        assertThat(lab.host.admin.peek()).as("it waits for an event").isNull();
      } else {
        int status = lab.run(example.admin, sqe).status();
        assertThat(Status.describe(status)).isEqualTo(Status.describe(0));
      }
    }
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("rows")
  void isAnsweredWith(MalformedRow row) {
    try (CommandLab lab = new CommandLab(row.config())) {
      MemorySegment sqe = row.example().command.apply(lab);
      row.spoil().apply(lab, sqe);
      boolean admin = row.example().admin;

      RawQueue.Completion c = lab.run(admin, sqe);

      assertThat(Status.describe(c.status() & ~Status.MORE))
          .as(row.toString())
          .isEqualTo(Status.describe(row.status()));
      isInTheErrorLog(lab, c, sqe);
      lab.host.adminOk(lab.identifyController());
      afterwardsTheQueueWorks(lab, row.example());
    }
  }

  /** Flushes all namespaces, whatever the row did to NSID 1. */
  private static void afterwardsTheQueueWorks(CommandLab lab, Example example) {
    // Number of Queues is set before any queue exists.
    if (example != Example.SET_QUEUES) {
      MemorySegment flush = lab.flush();
      Sqe.nsid(flush, 0, Sqe.NSID_ALL);
      lab.ioOk(flush);
    }
  }

  /** More is set exactly if the latest error log entry is this command's. */
  private static void isInTheErrorLog(CommandLab lab, RawQueue.Completion c, MemorySegment sqe) {
    assertThat(Status.more(c.status())).isTrue();
    lab.host.adminOk(lab.getErrorLog());
    ErrorLogEntry entry = new ErrorLogEntry(lab.memory());
    assertThat(entry.getLong(ErrorLogEntry.ERROR_COUNT)).isEqualTo(1);
    assertThat(entry.getInt(ErrorLogEntry.SQID)).isEqualTo(c.sqid());
    assertThat(entry.getInt(ErrorLogEntry.CID)).isEqualTo(c.cid());
    assertThat(entry.status() & ~Status.MORE).isEqualTo(c.status() & ~Status.MORE);
    assertThat(entry.getInt(ErrorLogEntry.NSID)).isEqualTo(Sqe.nsid(sqe, 0));
  }

  @Test
  void reservedFieldsPassWhenTheControllerIsNotStrict() {
    try (CommandLab lab = new CommandLab(b -> b.strict(false))) {
      MemorySegment read = Example.READ.command.apply(lab);
      Sqe.cdw2(read, 0, -1);
      Sqe.mptr(read, 0, -4);
      MemorySegment identify = lab.identifyController();
      Sqe.cdw15(identify, 0, 7);
      Sqe.nsid(identify, 0, 1);

      assertThat(lab.status(false, read)).isZero();
      assertThat(lab.status(true, identify)).isZero();
      Sqe.fuse(read, 0, 1);
      assertThat(lab.status(false, read)).isEqualTo(StatusCode.INVALID_FIELD.dnr());
    }
  }
}
