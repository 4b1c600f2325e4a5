package io.gpunvme.nvme.spec;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;

/** Opcodes and identifiers: constant, number and name. */
class NamesTest {
  private static final String ADMIN =
      """
      DELETE_IO_SQ 00 Delete I/O Submission Queue
      CREATE_IO_SQ 01 Create I/O Submission Queue
      GET_LOG_PAGE 02 Get Log Page
      DELETE_IO_CQ 04 Delete I/O Completion Queue
      CREATE_IO_CQ 05 Create I/O Completion Queue
      IDENTIFY 06 Identify
      ABORT 08 Abort
      SET_FEATURES 09 Set Features
      GET_FEATURES 0A Get Features
      ASYNC_EVENT_REQUEST 0C Asynchronous Event Request
      NS_MANAGEMENT 0D Namespace Management
      FIRMWARE_COMMIT 10 Firmware Commit
      FIRMWARE_DOWNLOAD 11 Firmware Image Download
      DEVICE_SELF_TEST 14 Device Self-test
      NS_ATTACHMENT 15 Namespace Attachment
      KEEP_ALIVE 18 Keep Alive
      DIRECTIVE_SEND 19 Directive Send
      DIRECTIVE_RECEIVE 1A Directive Receive
      VIRTUALIZATION_MANAGEMENT 1C Virtualization Management
      NVME_MI_SEND 1D NVMe-MI Send
      NVME_MI_RECEIVE 1E NVMe-MI Receive
      CAPACITY_MANAGEMENT 20 Capacity Management
      LOCKDOWN 24 Lockdown
      DOORBELL_BUFFER_CONFIG 7C Doorbell Buffer Config
      FABRICS 7F Fabrics Commands
      FORMAT_NVM 80 Format NVM
      SECURITY_SEND 81 Security Send
      SECURITY_RECEIVE 82 Security Receive
      SANITIZE 84 Sanitize
      GET_LBA_STATUS 86 Get LBA Status
      """;

  private static final String IO =
      """
      FLUSH 00 Flush
      WRITE 01 Write
      READ 02 Read
      WRITE_UNCORRECTABLE 04 Write Uncorrectable
      COMPARE 05 Compare
      WRITE_ZEROES 08 Write Zeroes
      DATASET_MANAGEMENT 09 Dataset Management
      VERIFY 0C Verify
      RESERVATION_REGISTER 0D Reservation Register
      RESERVATION_REPORT 0E Reservation Report
      RESERVATION_ACQUIRE 11 Reservation Acquire
      RESERVATION_RELEASE 15 Reservation Release
      COPY 19 Copy
      """;

  private static final String CNS =
      """
      NAMESPACE 00 Identify Namespace
      CONTROLLER 01 Identify Controller
      ACTIVE_NAMESPACES 02 Active Namespace ID list
      NAMESPACE_DESCRIPTORS 03 Namespace Identification Descriptor list
      NVM_SET_LIST 04 NVM Set List
      CSI_NAMESPACE 05 I/O Command Set specific Identify Namespace
      CSI_CONTROLLER 06 I/O Command Set specific Identify Controller
      CSI_ACTIVE_NAMESPACES 07 I/O Command Set specific Active Namespace ID list
      CSI_INDEPENDENT_NAMESPACE 08 I/O Command Set Independent Identify Namespace
      ALLOCATED_NAMESPACES 10 Allocated Namespace ID list
      ALLOCATED_NAMESPACE 11 Identify Namespace of an allocated NSID
      ATTACHED_CONTROLLERS 12 Controller list of an NSID
      SUBSYSTEM_CONTROLLERS 13 Controller list of the NVM subsystem
      PRIMARY_CONTROLLER_CAPABILITIES 14 Primary Controller Capabilities
      SECONDARY_CONTROLLERS 15 Secondary Controller list
      NAMESPACE_GRANULARITY 16 Namespace Granularity List
      UUID_LIST 17 UUID List
      DOMAIN_LIST 18 Domain List
      ENDURANCE_GROUPS 19 Endurance Group List
      CSI_ALLOCATED_NAMESPACES 1A I/O Command Set specific Allocated Namespace ID list
      CSI_ALLOCATED_NAMESPACE 1B I/O Command Set specific Identify Namespace of an allocated NSID
      IO_COMMAND_SETS 1C I/O Command Set list
      """;

  private static final String LOGS =
      """
      SUPPORTED 00 Supported Log Pages
      ERROR 01 Error Information
      SMART 02 SMART / Health Information
      FIRMWARE_SLOT 03 Firmware Slot Information
      CHANGED_NAMESPACES 04 Changed Namespace List
      COMMANDS_EFFECTS 05 Commands Supported and Effects
      DEVICE_SELF_TEST 06 Device Self-test
      TELEMETRY_HOST 07 Telemetry Host-Initiated
      TELEMETRY_CONTROLLER 08 Telemetry Controller-Initiated
      ENDURANCE_GROUP 09 Endurance Group Information
      PREDICTABLE_LATENCY 0A Predictable Latency Per NVM Set
      PREDICTABLE_LATENCY_EVENTS 0B Predictable Latency Event Aggregate
      ANA 0C Asymmetric Namespace Access
      PERSISTENT_EVENTS 0D Persistent Event Log
      LBA_STATUS 0E LBA Status Information
      ENDURANCE_GROUP_EVENTS 0F Endurance Group Event Aggregate
      MEDIA_UNIT_STATUS 10 Media Unit Status
      CAPACITY_CONFIGURATIONS 11 Supported Capacity Configuration List
      FEATURE_EFFECTS 12 Feature Identifiers Supported and Effects
      MI_COMMANDS_EFFECTS 13 NVMe-MI Commands Supported and Effects
      LOCKDOWN 14 Command and Feature Lockdown
      BOOT_PARTITION 15 Boot Partition
      ROTATIONAL_MEDIA 16 Rotational Media Information
      RESERVATION 80 Reservation Notification
      SANITIZE 81 Sanitize Status
      """;

  private static final String FEATURES =
      """
      ARBITRATION 01 Arbitration
      POWER_MANAGEMENT 02 Power Management
      LBA_RANGE_TYPE 03 LBA Range Type
      TEMPERATURE_THRESHOLD 04 Temperature Threshold
      ERROR_RECOVERY 05 Error Recovery
      VOLATILE_WRITE_CACHE 06 Volatile Write Cache
      NUMBER_OF_QUEUES 07 Number of Queues
      INTERRUPT_COALESCING 08 Interrupt Coalescing
      INTERRUPT_VECTOR_CONFIG 09 Interrupt Vector Configuration
      WRITE_ATOMICITY 0A Write Atomicity Normal
      ASYNC_EVENT_CONFIG 0B Asynchronous Event Configuration
      AUTONOMOUS_POWER 0C Autonomous Power State Transition
      HOST_MEMORY_BUFFER 0D Host Memory Buffer
      TIMESTAMP 0E Timestamp
      KEEP_ALIVE_TIMER 0F Keep Alive Timer
      HOST_CONTROLLED_THERMAL 10 Host Controlled Thermal Management
      NON_OPERATIONAL_POWER 11 Non-Operational Power State Config
      READ_RECOVERY_LEVEL 12 Read Recovery Level Config
      PREDICTABLE_LATENCY_CONFIG 13 Predictable Latency Mode Config
      PREDICTABLE_LATENCY_WINDOW 14 Predictable Latency Mode Window
      LBA_STATUS_INTERVAL 15 LBA Status Information Report Interval
      HOST_BEHAVIOR 16 Host Behavior Support
      SANITIZE_CONFIG 17 Sanitize Config
      ENDURANCE_GROUP_EVENTS 18 Endurance Group Event Configuration
      IO_COMMAND_SET_PROFILE 19 I/O Command Set Profile
      SPINUP_CONTROL 1A Spinup Control
      SOFTWARE_PROGRESS_MARKER 80 Software Progress Marker
      HOST_IDENTIFIER 81 Host Identifier
      RESERVATION_NOTIFICATION_MASK 82 Reservation Notification Mask
      RESERVATION_PERSISTENCE 83 Reservation Persistence
      WRITE_PROTECTION 84 Namespace Write Protection Config
      """;

  @Test
  void adminOpcodes() throws IllegalAccessException {
    check(ADMIN, AdminOpcode.class, AdminOpcode::name, "Admin opcode 3Fh", "Admin opcode 07h");
  }

  @Test
  void ioOpcodes() throws IllegalAccessException {
    check(IO, IoOpcode.class, IoOpcode::name, "I/O opcode 3Fh", "I/O opcode 07h");
  }

  @Test
  void identifyStructures() throws IllegalAccessException {
    check(CNS, Cns.class, Cns::name, "CNS 3Fh", "CNS 0Ch");
  }

  @Test
  void logPages() throws IllegalAccessException {
    check(LOGS, LogId.class, LogId::name, "Log page 3Fh", "Log page 17h");
  }

  @Test
  void features() throws IllegalAccessException {
    check(FEATURES, FeatureId.class, FeatureId::name, "Feature 3Fh", "Feature 00h");
  }

  private static void check(
      String table, Class<?> type, IntFunction<String> name, String... unknown)
      throws IllegalAccessException {
    List<String> constants = new ArrayList<>();
    for (Field field : type.getFields()) {
      int value = field.getInt(null);
      constants.add("%s %02X %s".formatted(field.getName(), value, name.apply(value)));
    }
    assertThat(constants).containsExactlyInAnyOrderElementsOf(table.lines().toList());
    for (String text : unknown) {
      int value = Integer.parseInt(text.substring(text.length() - 3, text.length() - 1), 16);
      assertThat(name.apply(value)).isEqualTo(text);
    }
  }
}
