package io.gpunvme.nvme.spec;

import java.util.Arrays;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The status codes of the Base and NVM Command Set specifications: status code type (SCT), status
 * code (SC) and name.
 *
 * <p>A status travels as an {@code int} (see {@link Status}); this enum is for names, comparisons
 * and for a controller that answers.
 */
public enum StatusCode {
  // Generic command status (Base 2.0, 3.3.3.2.1.1).
  SUCCESS(0, 0x00, "Successful Completion"),
  INVALID_OPCODE(0, 0x01, "Invalid Command Opcode"),
  INVALID_FIELD(0, 0x02, "Invalid Field in Command"),
  COMMAND_ID_CONFLICT(0, 0x03, "Command ID Conflict"),
  DATA_TRANSFER_ERROR(0, 0x04, "Data Transfer Error"),
  ABORTED_POWER_LOSS(0, 0x05, "Commands Aborted due to Power Loss Notification"),
  INTERNAL_ERROR(0, 0x06, "Internal Error"),
  ABORT_REQUESTED(0, 0x07, "Command Abort Requested"),
  ABORTED_SQ_DELETION(0, 0x08, "Command Aborted due to SQ Deletion"),
  ABORTED_FAILED_FUSED(0, 0x09, "Command Aborted due to Failed Fused Command"),
  ABORTED_MISSING_FUSED(0, 0x0A, "Command Aborted due to Missing Fused Command"),
  INVALID_NAMESPACE_OR_FORMAT(0, 0x0B, "Invalid Namespace or Format"),
  COMMAND_SEQUENCE_ERROR(0, 0x0C, "Command Sequence Error"),
  INVALID_SGL_SEGMENT_DESCRIPTOR(0, 0x0D, "Invalid SGL Segment Descriptor"),
  INVALID_SGL_DESCRIPTOR_COUNT(0, 0x0E, "Invalid Number of SGL Descriptors"),
  DATA_SGL_LENGTH_INVALID(0, 0x0F, "Data SGL Length Invalid"),
  METADATA_SGL_LENGTH_INVALID(0, 0x10, "Metadata SGL Length Invalid"),
  SGL_DESCRIPTOR_TYPE_INVALID(0, 0x11, "SGL Descriptor Type Invalid"),
  INVALID_USE_OF_CMB(0, 0x12, "Invalid Use of Controller Memory Buffer"),
  PRP_OFFSET_INVALID(0, 0x13, "PRP Offset Invalid"),
  ATOMIC_WRITE_UNIT_EXCEEDED(0, 0x14, "Atomic Write Unit Exceeded"),
  OPERATION_DENIED(0, 0x15, "Operation Denied"),
  SGL_OFFSET_INVALID(0, 0x16, "SGL Offset Invalid"),
  HOST_IDENTIFIER_INCONSISTENT(0, 0x18, "Host Identifier Inconsistent Format"),
  KEEP_ALIVE_TIMER_EXPIRED(0, 0x19, "Keep Alive Timer Expired"),
  KEEP_ALIVE_TIMEOUT_INVALID(0, 0x1A, "Keep Alive Timeout Invalid"),
  ABORTED_PREEMPT_AND_ABORT(0, 0x1B, "Command Aborted due to Preempt and Abort"),
  SANITIZE_FAILED(0, 0x1C, "Sanitize Failed"),
  SANITIZE_IN_PROGRESS(0, 0x1D, "Sanitize In Progress"),
  SGL_BLOCK_GRANULARITY_INVALID(0, 0x1E, "SGL Data Block Granularity Invalid"),
  NOT_SUPPORTED_FOR_QUEUE_IN_CMB(0, 0x1F, "Command Not Supported for Queue in CMB"),
  NAMESPACE_WRITE_PROTECTED(0, 0x20, "Namespace is Write Protected"),
  COMMAND_INTERRUPTED(0, 0x21, "Command Interrupted"),
  TRANSIENT_TRANSPORT_ERROR(0, 0x22, "Transient Transport Error"),
  PROHIBITED_BY_LOCKDOWN(0, 0x23, "Command Prohibited by Command and Feature Lockdown"),
  ADMIN_MEDIA_NOT_READY(0, 0x24, "Admin Command Media Not Ready"),
  LBA_OUT_OF_RANGE(0, 0x80, "LBA Out of Range"),
  CAPACITY_EXCEEDED(0, 0x81, "Capacity Exceeded"),
  NAMESPACE_NOT_READY(0, 0x82, "Namespace Not Ready"),
  RESERVATION_CONFLICT(0, 0x83, "Reservation Conflict"),
  FORMAT_IN_PROGRESS(0, 0x84, "Format In Progress"),
  // Command specific status (Base 2.0, 3.3.3.2.1.2); from 80h up NVM Command Set (NVM 1.0, 3.1.2).
  COMPLETION_QUEUE_INVALID(1, 0x00, "Completion Queue Invalid"),
  INVALID_QUEUE_IDENTIFIER(1, 0x01, "Invalid Queue Identifier"),
  INVALID_QUEUE_SIZE(1, 0x02, "Invalid Queue Size"),
  ABORT_LIMIT_EXCEEDED(1, 0x03, "Abort Command Limit Exceeded"),
  ASYNC_EVENT_REQUEST_LIMIT_EXCEEDED(1, 0x05, "Asynchronous Event Request Limit Exceeded"),
  INVALID_FIRMWARE_SLOT(1, 0x06, "Invalid Firmware Slot"),
  INVALID_FIRMWARE_IMAGE(1, 0x07, "Invalid Firmware Image"),
  INVALID_INTERRUPT_VECTOR(1, 0x08, "Invalid Interrupt Vector"),
  INVALID_LOG_PAGE(1, 0x09, "Invalid Log Page"),
  INVALID_FORMAT(1, 0x0A, "Invalid Format"),
  FIRMWARE_NEEDS_CONVENTIONAL_RESET(1, 0x0B, "Firmware Activation Requires Conventional Reset"),
  INVALID_QUEUE_DELETION(1, 0x0C, "Invalid Queue Deletion"),
  FEATURE_NOT_SAVEABLE(1, 0x0D, "Feature Identifier Not Saveable"),
  FEATURE_NOT_CHANGEABLE(1, 0x0E, "Feature Not Changeable"),
  FEATURE_NOT_NAMESPACE_SPECIFIC(1, 0x0F, "Feature Not Namespace Specific"),
  FIRMWARE_NEEDS_SUBSYSTEM_RESET(1, 0x10, "Firmware Activation Requires NVM Subsystem Reset"),
  FIRMWARE_NEEDS_CONTROLLER_RESET(1, 0x11, "Firmware Activation Requires Controller Level Reset"),
  FIRMWARE_NEEDS_MAX_TIME_VIOLATION(1, 0x12, "Firmware Activation Requires Maximum Time Violation"),
  FIRMWARE_ACTIVATION_PROHIBITED(1, 0x13, "Firmware Activation Prohibited"),
  OVERLAPPING_RANGE(1, 0x14, "Overlapping Range"),
  NAMESPACE_INSUFFICIENT_CAPACITY(1, 0x15, "Namespace Insufficient Capacity"),
  NAMESPACE_IDENTIFIER_UNAVAILABLE(1, 0x16, "Namespace Identifier Unavailable"),
  NAMESPACE_ALREADY_ATTACHED(1, 0x18, "Namespace Already Attached"),
  NAMESPACE_IS_PRIVATE(1, 0x19, "Namespace Is Private"),
  NAMESPACE_NOT_ATTACHED(1, 0x1A, "Namespace Not Attached"),
  THIN_PROVISIONING_NOT_SUPPORTED(1, 0x1B, "Thin Provisioning Not Supported"),
  CONTROLLER_LIST_INVALID(1, 0x1C, "Controller List Invalid"),
  SELF_TEST_IN_PROGRESS(1, 0x1D, "Device Self-test In Progress"),
  BOOT_PARTITION_WRITE_PROHIBITED(1, 0x1E, "Boot Partition Write Prohibited"),
  INVALID_CONTROLLER_IDENTIFIER(1, 0x1F, "Invalid Controller Identifier"),
  INVALID_SECONDARY_CONTROLLER_STATE(1, 0x20, "Invalid Secondary Controller State"),
  INVALID_CONTROLLER_RESOURCE_COUNT(1, 0x21, "Invalid Number of Controller Resources"),
  INVALID_RESOURCE_IDENTIFIER(1, 0x22, "Invalid Resource Identifier"),
  SANITIZE_PROHIBITED_PMR(1, 0x23, "Sanitize Prohibited While Persistent Memory Region is Enabled"),
  ANA_GROUP_IDENTIFIER_INVALID(1, 0x24, "ANA Group Identifier Invalid"),
  ANA_ATTACH_FAILED(1, 0x25, "ANA Attach Failed"),
  INSUFFICIENT_CAPACITY(1, 0x26, "Insufficient Capacity"),
  NAMESPACE_ATTACHMENT_LIMIT_EXCEEDED(1, 0x27, "Namespace Attachment Limit Exceeded"),
  EXECUTION_PROHIBITION_NOT_SUPPORTED(1, 0x28, "Prohibition of Command Execution Not Supported"),
  IO_COMMAND_SET_NOT_SUPPORTED(1, 0x29, "I/O Command Set Not Supported"),
  IO_COMMAND_SET_NOT_ENABLED(1, 0x2A, "I/O Command Set Not Enabled"),
  IO_COMMAND_SET_COMBINATION_REJECTED(1, 0x2B, "I/O Command Set Combination Rejected"),
  INVALID_IO_COMMAND_SET(1, 0x2C, "Invalid I/O Command Set"),
  IDENTIFIER_UNAVAILABLE(1, 0x2D, "Identifier Unavailable"),
  CONFLICTING_ATTRIBUTES(1, 0x80, "Conflicting Attributes"),
  INVALID_PROTECTION_INFORMATION(1, 0x81, "Invalid Protection Information"),
  WRITE_TO_READ_ONLY_RANGE(1, 0x82, "Attempted Write to Read Only Range"),
  COMMAND_SIZE_LIMIT_EXCEEDED(1, 0x83, "Command Size Limit Exceeded"),
  // Media and data integrity errors (Base 2.0, 3.3.3.2.1.3; NVM 1.0, 3.1.2).
  WRITE_FAULT(2, 0x80, "Write Fault"),
  UNRECOVERED_READ_ERROR(2, 0x81, "Unrecovered Read Error"),
  GUARD_CHECK_ERROR(2, 0x82, "End-to-end Guard Check Error"),
  APPLICATION_TAG_CHECK_ERROR(2, 0x83, "End-to-end Application Tag Check Error"),
  REFERENCE_TAG_CHECK_ERROR(2, 0x84, "End-to-end Reference Tag Check Error"),
  COMPARE_FAILURE(2, 0x85, "Compare Failure"),
  ACCESS_DENIED(2, 0x86, "Access Denied"),
  DEALLOCATED_OR_UNWRITTEN_BLOCK(2, 0x87, "Deallocated or Unwritten Logical Block"),
  STORAGE_TAG_CHECK_ERROR(2, 0x88, "End-to-End Storage Tag Check Error"),
  // Path related status (Base 2.0, 3.3.3.2.1.4).
  INTERNAL_PATH_ERROR(3, 0x00, "Internal Path Error"),
  ANA_PERSISTENT_LOSS(3, 0x01, "Asymmetric Access Persistent Loss"),
  ANA_INACCESSIBLE(3, 0x02, "Asymmetric Access Inaccessible"),
  ANA_TRANSITION(3, 0x03, "Asymmetric Access Transition"),
  CONTROLLER_PATHING_ERROR(3, 0x60, "Controller Pathing Error"),
  HOST_PATHING_ERROR(3, 0x70, "Host Pathing Error"),
  ABORTED_BY_HOST(3, 0x71, "Command Aborted By Host");

  private static final Map<Integer, StatusCode> BY_STATUS =
      Arrays.stream(values()).collect(Collectors.toMap(StatusCode::status, Function.identity()));

  private final int status;
  private final String text;

  StatusCode(int sct, int sc, String text) {
    this.status = Status.of(sct, sc);
    this.text = text;
  }

  /** Status Code Type: 0 generic, 1 command specific, 2 media, 3 path. */
  public int sct() {
    return Status.sct(status);
  }

  /** Status Code, 0..255, to be read together with {@link #sct()}. */
  public int sc() {
    return Status.sc(status);
  }

  /** SC and SCT as a status field: no retry delay, More and Do Not Retry clear. */
  public int status() {
    return status;
  }

  /** {@link #status()} with Do Not Retry set. */
  public int dnr() {
    return status | Status.DNR;
  }

  /** The specification's name. */
  public String text() {
    return text;
  }

  /**
   * Returns the code of a status field whatever its CRD, M and DNR bits, or null if the
   * specification names none.
   */
  public static @Nullable StatusCode of(int status) {
    return BY_STATUS.get(status & Status.CODE_MASK);
  }
}
