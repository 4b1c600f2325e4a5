package io.gpunvme.nvme.spec;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Base 2.0, 3.3.3.2.1 and NVM 1.0, 3.1.2: the status field and all status codes. */
class StatusTest {
  /** SCT, SC and name as the specifications' tables give them. */
  private static final String CODES =
      """
      0 00 Successful Completion
      0 01 Invalid Command Opcode
      0 02 Invalid Field in Command
      0 03 Command ID Conflict
      0 04 Data Transfer Error
      0 05 Commands Aborted due to Power Loss Notification
      0 06 Internal Error
      0 07 Command Abort Requested
      0 08 Command Aborted due to SQ Deletion
      0 09 Command Aborted due to Failed Fused Command
      0 0A Command Aborted due to Missing Fused Command
      0 0B Invalid Namespace or Format
      0 0C Command Sequence Error
      0 0D Invalid SGL Segment Descriptor
      0 0E Invalid Number of SGL Descriptors
      0 0F Data SGL Length Invalid
      0 10 Metadata SGL Length Invalid
      0 11 SGL Descriptor Type Invalid
      0 12 Invalid Use of Controller Memory Buffer
      0 13 PRP Offset Invalid
      0 14 Atomic Write Unit Exceeded
      0 15 Operation Denied
      0 16 SGL Offset Invalid
      0 18 Host Identifier Inconsistent Format
      0 19 Keep Alive Timer Expired
      0 1A Keep Alive Timeout Invalid
      0 1B Command Aborted due to Preempt and Abort
      0 1C Sanitize Failed
      0 1D Sanitize In Progress
      0 1E SGL Data Block Granularity Invalid
      0 1F Command Not Supported for Queue in CMB
      0 20 Namespace is Write Protected
      0 21 Command Interrupted
      0 22 Transient Transport Error
      0 23 Command Prohibited by Command and Feature Lockdown
      0 24 Admin Command Media Not Ready
      0 80 LBA Out of Range
      0 81 Capacity Exceeded
      0 82 Namespace Not Ready
      0 83 Reservation Conflict
      0 84 Format In Progress
      1 00 Completion Queue Invalid
      1 01 Invalid Queue Identifier
      1 02 Invalid Queue Size
      1 03 Abort Command Limit Exceeded
      1 05 Asynchronous Event Request Limit Exceeded
      1 06 Invalid Firmware Slot
      1 07 Invalid Firmware Image
      1 08 Invalid Interrupt Vector
      1 09 Invalid Log Page
      1 0A Invalid Format
      1 0B Firmware Activation Requires Conventional Reset
      1 0C Invalid Queue Deletion
      1 0D Feature Identifier Not Saveable
      1 0E Feature Not Changeable
      1 0F Feature Not Namespace Specific
      1 10 Firmware Activation Requires NVM Subsystem Reset
      1 11 Firmware Activation Requires Controller Level Reset
      1 12 Firmware Activation Requires Maximum Time Violation
      1 13 Firmware Activation Prohibited
      1 14 Overlapping Range
      1 15 Namespace Insufficient Capacity
      1 16 Namespace Identifier Unavailable
      1 18 Namespace Already Attached
      1 19 Namespace Is Private
      1 1A Namespace Not Attached
      1 1B Thin Provisioning Not Supported
      1 1C Controller List Invalid
      1 1D Device Self-test In Progress
      1 1E Boot Partition Write Prohibited
      1 1F Invalid Controller Identifier
      1 20 Invalid Secondary Controller State
      1 21 Invalid Number of Controller Resources
      1 22 Invalid Resource Identifier
      1 23 Sanitize Prohibited While Persistent Memory Region is Enabled
      1 24 ANA Group Identifier Invalid
      1 25 ANA Attach Failed
      1 26 Insufficient Capacity
      1 27 Namespace Attachment Limit Exceeded
      1 28 Prohibition of Command Execution Not Supported
      1 29 I/O Command Set Not Supported
      1 2A I/O Command Set Not Enabled
      1 2B I/O Command Set Combination Rejected
      1 2C Invalid I/O Command Set
      1 2D Identifier Unavailable
      1 80 Conflicting Attributes
      1 81 Invalid Protection Information
      1 82 Attempted Write to Read Only Range
      1 83 Command Size Limit Exceeded
      2 80 Write Fault
      2 81 Unrecovered Read Error
      2 82 End-to-end Guard Check Error
      2 83 End-to-end Application Tag Check Error
      2 84 End-to-end Reference Tag Check Error
      2 85 Compare Failure
      2 86 Access Denied
      2 87 Deallocated or Unwritten Logical Block
      2 88 End-to-End Storage Tag Check Error
      3 00 Internal Path Error
      3 01 Asymmetric Access Persistent Loss
      3 02 Asymmetric Access Inaccessible
      3 03 Asymmetric Access Transition
      3 60 Controller Pathing Error
      3 70 Host Pathing Error
      3 71 Command Aborted By Host
      """;

  @Test
  void everyCodeHasItsTypeNumberAndName() {
    Set<StatusCode> seen = new HashSet<>();
    for (String row : CODES.lines().toList()) {
      int sct = Integer.parseInt(row.substring(0, 1));
      int sc = Integer.parseInt(row.substring(2, 4), 16);
      StatusCode code = StatusCode.of(sct * 256 + sc);
      assertThat(code).as(row).isNotNull();
      assertThat(code.text()).as(row).isEqualTo(row.substring(5));
      assertThat(code.sct()).as(row).isEqualTo(sct);
      assertThat(code.sc()).as(row).isEqualTo(sc);
      assertThat(code.status()).as(row).isEqualTo(sct * 256 + sc);
      assertThat(code.dnr()).as(row).isEqualTo(0x4000 + sct * 256 + sc);
      assertThat(StatusCode.of(0x7800 + sct * 256 + sc)).as("with every flag").isSameAs(code);
      seen.add(code);
    }
    assertThat(seen).containsExactlyInAnyOrder(StatusCode.values());
  }

  @Test
  void noOtherStatusHasAName() {
    Map<Integer, StatusCode> named = new HashMap<>();
    for (int status = 0; status < 0x800; status++) {
      StatusCode code = StatusCode.of(status);
      if (code != null) {
        named.put(status, code);
      }
    }
    assertThat(named).hasSize(CODES.lines().toList().size());
  }

  /** The constants others compare with, so that a name cannot move to another number. */
  @ParameterizedTest
  @CsvSource({
    "SUCCESS, 0x0",
    "INVALID_OPCODE, 0x1",
    "INVALID_FIELD, 0x2",
    "COMMAND_ID_CONFLICT, 0x3",
    "DATA_TRANSFER_ERROR, 0x4",
    "ABORTED_POWER_LOSS, 0x5",
    "INTERNAL_ERROR, 0x6",
    "ABORT_REQUESTED, 0x7",
    "ABORTED_SQ_DELETION, 0x8",
    "ABORTED_FAILED_FUSED, 0x9",
    "ABORTED_MISSING_FUSED, 0xA",
    "INVALID_NAMESPACE_OR_FORMAT, 0xB",
    "COMMAND_SEQUENCE_ERROR, 0xC",
    "INVALID_SGL_SEGMENT_DESCRIPTOR, 0xD",
    "INVALID_SGL_DESCRIPTOR_COUNT, 0xE",
    "DATA_SGL_LENGTH_INVALID, 0xF",
    "METADATA_SGL_LENGTH_INVALID, 0x10",
    "SGL_DESCRIPTOR_TYPE_INVALID, 0x11",
    "INVALID_USE_OF_CMB, 0x12",
    "PRP_OFFSET_INVALID, 0x13",
    "SGL_OFFSET_INVALID, 0x16",
    "LBA_OUT_OF_RANGE, 0x80",
    "CAPACITY_EXCEEDED, 0x81",
    "NAMESPACE_NOT_READY, 0x82",
    "COMPLETION_QUEUE_INVALID, 0x100",
    "INVALID_QUEUE_IDENTIFIER, 0x101",
    "INVALID_QUEUE_SIZE, 0x102",
    "ABORT_LIMIT_EXCEEDED, 0x103",
    "ASYNC_EVENT_REQUEST_LIMIT_EXCEEDED, 0x105",
    "INVALID_FIRMWARE_SLOT, 0x106",
    "INVALID_INTERRUPT_VECTOR, 0x108",
    "INVALID_LOG_PAGE, 0x109",
    "INVALID_FORMAT, 0x10A",
    "INVALID_QUEUE_DELETION, 0x10C",
    "FEATURE_NOT_SAVEABLE, 0x10D",
    "FEATURE_NOT_CHANGEABLE, 0x10E",
    "FEATURE_NOT_NAMESPACE_SPECIFIC, 0x10F",
    "CONFLICTING_ATTRIBUTES, 0x180",
    "WRITE_TO_READ_ONLY_RANGE, 0x182",
    "COMMAND_SIZE_LIMIT_EXCEEDED, 0x183",
    "WRITE_FAULT, 0x280",
    "UNRECOVERED_READ_ERROR, 0x281",
    "COMPARE_FAILURE, 0x285",
    "INTERNAL_PATH_ERROR, 0x300",
    "HOST_PATHING_ERROR, 0x370",
    "ABORTED_BY_HOST, 0x371"
  })
  void constants(StatusCode code, String status) {
    assertThat(code.status()).isEqualTo(Integer.decode(status));
  }

  @Test
  void partsOfTheStatusField() {
    assertThat(Status.sc(0x7FA5)).isEqualTo(0xA5);
    assertThat(Status.sc(0x7F00)).isZero();
    assertThat(Status.sct(0x05A5)).isEqualTo(5);
    assertThat(Status.sct(0x78FF)).isZero();
    assertThat(Status.crd(0x1000)).isEqualTo(2);
    assertThat(Status.crd(0x67FF)).isZero();
    assertThat(Status.crd(0x7FFF)).isEqualTo(3);
    assertThat(Status.more(0x2000)).isTrue();
    assertThat(Status.more(0x5FFF)).isFalse();
    assertThat(Status.dnr(0x4000)).isTrue();
    assertThat(Status.dnr(0x3FFF)).isFalse();
    assertThat(Status.DNR).isEqualTo(0x4000);
    assertThat(Status.MORE).isEqualTo(0x2000);
  }

  @Test
  void onlyTypeAndCodeDecideOnSuccess() {
    assertThat(Status.ok(0)).isTrue();
    assertThat(Status.ok(0x7800)).isTrue();
    assertThat(Status.ok(1)).isFalse();
    assertThat(Status.ok(0x100)).isFalse();
    assertThat(Status.ok(0x400)).isFalse();
  }

  @Test
  void of() {
    assertThat(Status.of(1, 0x82)).isEqualTo(0x182);
    assertThat(Status.of(7, 0xFF)).isEqualTo(0x7FF);
    assertThat(Status.of(9, 0x102)).isEqualTo(0x102);
    assertThat(
            new int[] {
              Status.SCT_GENERIC,
              Status.SCT_COMMAND_SPECIFIC,
              Status.SCT_MEDIA,
              Status.SCT_PATH,
              Status.SCT_VENDOR
            })
        .containsExactly(0, 1, 2, 3, 7);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          0x0000 | Successful Completion (SCT 0h, SC 00h)
          0x4080 | LBA Out of Range (SCT 0h, SC 80h, DNR)
          0x0A81 | Unrecovered Read Error (SCT 2h, SC 81h, CRD 1)
          0x7982 | Attempted Write to Read Only Range (SCT 1h, SC 82h, CRD 3, M, DNR)
          0x2371 | Command Aborted By Host (SCT 3h, SC 71h, M)
          0x0099 | Unknown generic status (SCT 0h, SC 99h)
          0x01FF | Unknown command specific status (SCT 1h, SC FFh)
          0x02FF | Unknown media error (SCT 2h, SC FFh)
          0x03FF | Unknown path status (SCT 3h, SC FFh)
          0x0401 | Reserved status type (SCT 4h, SC 01h)
          0x07C0 | Vendor specific status (SCT 7h, SC C0h)
          """)
  void describe(String status, String text) {
    assertThat(Status.describe(Integer.decode(status))).isEqualTo(text);
  }
}
