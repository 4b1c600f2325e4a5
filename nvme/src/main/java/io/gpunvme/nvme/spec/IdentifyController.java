package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * Identify Controller data structure: 4096 bytes (Base 2.0, 5.17.2.1). Fields of message-based
 * transports are left out.
 */
public final class IdentifyController extends View<IdentifyController> {
  /** Bytes of the structure. */
  public static final int SIZE = 4096;

  /** Power state descriptors in the structure. */
  public static final int POWER_STATES = 32;

  /** OAES bit 8: Namespace Attribute notices. */
  public static final int OAES_NAMESPACE_ATTRIBUTES = 1 << 8;

  /** OAES bit 9: Firmware Activation notices. */
  public static final int OAES_FIRMWARE_ACTIVATION = 1 << 9;

  /** CTRATT bit 0: 128-bit Host Identifier. */
  public static final int CTRATT_HOST_ID_128 = 1;

  /** OACS bit 0: Security Send and Receive. */
  public static final int OACS_SECURITY = 1;

  /** OACS bit 1: Format NVM. */
  public static final int OACS_FORMAT = 1 << 1;

  /** OACS bit 2: Firmware Commit and Image Download. */
  public static final int OACS_FIRMWARE = 1 << 2;

  /** OACS bit 3: Namespace Management and Attachment. */
  public static final int OACS_NS_MANAGEMENT = 1 << 3;

  /** OACS bit 4: Device Self-test. */
  public static final int OACS_SELF_TEST = 1 << 4;

  /** OACS bit 5: Directives. */
  public static final int OACS_DIRECTIVES = 1 << 5;

  /** OACS bit 6: NVMe-MI Send and Receive. */
  public static final int OACS_NVME_MI = 1 << 6;

  /** OACS bit 7: Virtualization Management. */
  public static final int OACS_VIRTUALIZATION = 1 << 7;

  /** OACS bit 8: Doorbell Buffer Config. */
  public static final int OACS_DOORBELL_BUFFER = 1 << 8;

  /** OACS bit 9: Get LBA Status. */
  public static final int OACS_GET_LBA_STATUS = 1 << 9;

  /** OACS bit 10: Command and Feature Lockdown. */
  public static final int OACS_LOCKDOWN = 1 << 10;

  /** LPA bit 0: SMART log per namespace. */
  public static final int LPA_SMART_PER_NAMESPACE = 1;

  /** LPA bit 1: Commands Supported and Effects log. */
  public static final int LPA_COMMANDS_EFFECTS = 1 << 1;

  /** LPA bit 2: extended data for Get Log Page: 32-bit length and offset. */
  public static final int LPA_EXTENDED_DATA = 1 << 2;

  /** LPA bit 3: Telemetry logs. */
  public static final int LPA_TELEMETRY = 1 << 3;

  /** LPA bit 4: Persistent Event log. */
  public static final int LPA_PERSISTENT_EVENT = 1 << 4;

  /** LPA bit 5: Supported Log Pages and Feature Identifiers Effects logs. */
  public static final int LPA_SUPPORTED_LOG_PAGES = 1 << 5;

  /** ONCS bit 0: Compare. */
  public static final int ONCS_COMPARE = 1;

  /** ONCS bit 1: Write Uncorrectable. */
  public static final int ONCS_WRITE_UNCORRECTABLE = 1 << 1;

  /** ONCS bit 2: Dataset Management. */
  public static final int ONCS_DATASET_MANAGEMENT = 1 << 2;

  /** ONCS bit 3: Write Zeroes. */
  public static final int ONCS_WRITE_ZEROES = 1 << 3;

  /** ONCS bit 4: Save in Set Features and Select in Get Features. */
  public static final int ONCS_SAVE_SELECT = 1 << 4;

  /** ONCS bit 5: Reservations. */
  public static final int ONCS_RESERVATIONS = 1 << 5;

  /** ONCS bit 6: Timestamp feature. */
  public static final int ONCS_TIMESTAMP = 1 << 6;

  /** ONCS bit 7: Verify. */
  public static final int ONCS_VERIFY = 1 << 7;

  /** ONCS bit 8: Copy. */
  public static final int ONCS_COPY = 1 << 8;

  /** FUSES bit 0: Compare and Write as a fused pair. */
  public static final int FUSES_COMPARE_WRITE = 1;

  /** VWC bit 0: a volatile write cache is present. */
  public static final int VWC_PRESENT = 1;

  /** VWC bits 2:1 both set: Flush may address all namespaces at once. */
  public static final int VWC_FLUSH_ALL = 3 << 1;

  /** SGLS bit 0: SGLs, no alignment needed. */
  public static final int SGLS_SUPPORTED = 1;

  /** SGLS bit 1: SGLs, Dword aligned and sized. */
  public static final int SGLS_DWORD_ALIGNED = 1 << 1;

  /** SGLS bit 2: Keyed SGL Data Block descriptor. */
  public static final int SGLS_KEYED = 1 << 2;

  /** SGLS bit 16: SGL Bit Bucket descriptor. */
  public static final int SGLS_BIT_BUCKET = 1 << 16;

  /** SGLS bit 17: byte aligned contiguous metadata buffer. */
  public static final int SGLS_METADATA_BYTE_ALIGNED = 1 << 17;

  /** SGLS bit 18: SGLs longer than the data. */
  public static final int SGLS_OVERSIZED = 1 << 18;

  /** SGLS bit 19: metadata pointer to an SGL segment. */
  public static final int SGLS_METADATA_SGL = 1 << 19;

  /** SGLS bit 20: address as an offset. */
  public static final int SGLS_ADDRESS_OFFSET = 1 << 20;

  /** SGLS bit 21: Transport SGL Data Block descriptor. */
  public static final int SGLS_TRANSPORT = 1 << 21;

  private static final FieldTable TABLE = new FieldTable();

  public static final Field VID = TABLE.flags("VID", 0, 2, "PCI Vendor ID");
  public static final Field SSVID = TABLE.flags("SSVID", 2, 2, "PCI Subsystem Vendor ID");
  public static final Field SN = TABLE.text("SN", 4, 20, "Serial Number");
  public static final Field MN = TABLE.text("MN", 24, 40, "Model Number");
  public static final Field FR = TABLE.text("FR", 64, 8, "Firmware Revision");
  public static final Field RAB =
      TABLE.number("RAB", 72, 1, "Recommended Arbitration Burst, power of two");
  public static final Field IEEE = TABLE.flags("IEEE", 73, 3, "IEEE OUI Identifier");
  public static final Field CMIC =
      TABLE.flags("CMIC", 76, 1, "Controller Multi-Path I/O and Namespace Sharing Capabilities");
  public static final Field MDTS =
      TABLE.number(
          "MDTS",
          77,
          1,
          "Maximum Data Transfer Size, power of two of the minimum page size; 0 no limit");
  public static final Field CNTLID = TABLE.number("CNTLID", 78, 2, "Controller ID");
  public static final Field VER = TABLE.flags("VER", 80, 4, "Version, as register VS");
  public static final Field RTD3R =
      TABLE.number("RTD3R", 84, 4, "RTD3 Resume Latency in microseconds");
  public static final Field RTD3E =
      TABLE.number("RTD3E", 88, 4, "RTD3 Entry Latency in microseconds");
  public static final Field OAES =
      TABLE.flags("OAES", 92, 4, "Optional Asynchronous Events Supported");
  public static final Field CTRATT = TABLE.flags("CTRATT", 96, 4, "Controller Attributes");
  public static final Field RRLS = TABLE.flags("RRLS", 100, 2, "Read Recovery Levels Supported");
  public static final Field CNTRLTYPE =
      TABLE.number(
          "CNTRLTYPE",
          111,
          1,
          "Controller Type: 0 not reported, 1 I/O, 2 discovery, 3 administrative");
  public static final Field FGUID = TABLE.bytes("FGUID", 112, 16, "FRU Globally Unique Identifier");
  public static final Field CRDT1 =
      TABLE.number("CRDT1", 128, 2, "Command Retry Delay Time 1, 100 ms units");
  public static final Field CRDT2 =
      TABLE.number("CRDT2", 130, 2, "Command Retry Delay Time 2, 100 ms units");
  public static final Field CRDT3 =
      TABLE.number("CRDT3", 132, 2, "Command Retry Delay Time 3, 100 ms units");
  public static final Field NVMSR = TABLE.flags("NVMSR", 253, 1, "NVM Subsystem Report");
  public static final Field VWCI = TABLE.flags("VWCI", 254, 1, "VPD Write Cycle Information");
  public static final Field MEC = TABLE.flags("MEC", 255, 1, "Management Endpoint Capabilities");
  public static final Field OACS = TABLE.flags("OACS", 256, 2, "Optional Admin Command Support");
  public static final Field ACL = TABLE.number("ACL", 258, 1, "Abort Command Limit, zero-based");
  public static final Field AERL =
      TABLE.number("AERL", 259, 1, "Asynchronous Event Request Limit, zero-based");
  public static final Field FRMW =
      TABLE.flags("FRMW", 260, 1, "Firmware Updates: bit 0 slot 1 read only, bits 3:1 slots");
  public static final Field LPA = TABLE.flags("LPA", 261, 1, "Log Page Attributes");
  public static final Field ELPE =
      TABLE.number("ELPE", 262, 1, "Error Log Page Entries, zero-based");
  public static final Field NPSS =
      TABLE.number("NPSS", 263, 1, "Number of Power States Support, zero-based");
  public static final Field AVSCC =
      TABLE.flags("AVSCC", 264, 1, "Admin Vendor Specific Command Configuration");
  public static final Field APSTA =
      TABLE.flags("APSTA", 265, 1, "Autonomous Power State Transition Attributes");
  public static final Field WCTEMP =
      TABLE.number("WCTEMP", 266, 2, "Warning Composite Temperature Threshold, kelvin");
  public static final Field CCTEMP =
      TABLE.number("CCTEMP", 268, 2, "Critical Composite Temperature Threshold, kelvin");
  public static final Field MTFA =
      TABLE.number("MTFA", 270, 2, "Maximum Time for Firmware Activation, 100 ms units");
  public static final Field HMPRE =
      TABLE.number("HMPRE", 272, 4, "Host Memory Buffer Preferred Size, 4 KiB units");
  public static final Field HMMIN =
      TABLE.number("HMMIN", 276, 4, "Host Memory Buffer Minimum Size, 4 KiB units");
  public static final Field TNVMCAP =
      TABLE.number("TNVMCAP", 280, 16, "Total NVM Capacity in bytes");
  public static final Field UNVMCAP =
      TABLE.number("UNVMCAP", 296, 16, "Unallocated NVM Capacity in bytes");
  public static final Field RPMBS =
      TABLE.flags("RPMBS", 312, 4, "Replay Protected Memory Block Support");
  public static final Field EDSTT =
      TABLE.number("EDSTT", 316, 2, "Extended Device Self-test Time, minutes");
  public static final Field DSTO = TABLE.flags("DSTO", 318, 1, "Device Self-test Options");
  public static final Field FWUG =
      TABLE.number("FWUG", 319, 1, "Firmware Update Granularity, 4 KiB units; 255 no restriction");
  public static final Field KAS =
      TABLE.number("KAS", 320, 2, "Keep Alive Support: granularity in 100 ms units, 0 unsupported");
  public static final Field HCTMA =
      TABLE.flags("HCTMA", 322, 2, "Host Controlled Thermal Management Attributes");
  public static final Field MNTMT =
      TABLE.number("MNTMT", 324, 2, "Minimum Thermal Management Temperature, kelvin");
  public static final Field MXTMT =
      TABLE.number("MXTMT", 326, 2, "Maximum Thermal Management Temperature, kelvin");
  public static final Field SANICAP = TABLE.flags("SANICAP", 328, 4, "Sanitize Capabilities");
  public static final Field HMMINDS =
      TABLE.number(
          "HMMINDS", 332, 4, "Host Memory Buffer Minimum Descriptor Entry Size, 4 KiB units");
  public static final Field HMMAXD =
      TABLE.number("HMMAXD", 336, 2, "Host Memory Maximum Descriptors Entries; 0 no limit");
  public static final Field NSETIDMAX =
      TABLE.number("NSETIDMAX", 338, 2, "NVM Set Identifier Maximum");
  public static final Field ENDGIDMAX =
      TABLE.number("ENDGIDMAX", 340, 2, "Endurance Group Identifier Maximum");
  public static final Field ANATT = TABLE.number("ANATT", 342, 1, "ANA Transition Time, seconds");
  public static final Field ANACAP =
      TABLE.flags("ANACAP", 343, 1, "Asymmetric Namespace Access Capabilities");
  public static final Field ANAGRPMAX =
      TABLE.number("ANAGRPMAX", 344, 4, "ANA Group Identifier Maximum");
  public static final Field NANAGRPID =
      TABLE.number("NANAGRPID", 348, 4, "Number of ANA Group Identifiers");
  public static final Field PELS =
      TABLE.number("PELS", 352, 4, "Persistent Event Log Size, 64 KiB units");
  public static final Field DOMAINID = TABLE.number("DOMAINID", 356, 2, "Domain Identifier");
  public static final Field MEGCAP =
      TABLE.number("MEGCAP", 368, 16, "Max Endurance Group Capacity in bytes");
  public static final Field SQES =
      TABLE.flags(
          "SQES",
          512,
          1,
          "Submission Queue Entry Size: bits 3:0 required, bits 7:4 maximum, powers of two");
  public static final Field CQES =
      TABLE.flags(
          "CQES",
          513,
          1,
          "Completion Queue Entry Size: bits 3:0 required, bits 7:4 maximum, powers of two");
  public static final Field MAXCMD =
      TABLE.number("MAXCMD", 514, 2, "Maximum Outstanding Commands; 0 not reported");
  public static final Field NN =
      TABLE.number("NN", 516, 4, "Number of Namespaces: the largest NSID");
  public static final Field ONCS = TABLE.flags("ONCS", 520, 2, "Optional NVM Command Support");
  public static final Field FUSES = TABLE.flags("FUSES", 522, 2, "Fused Operation Support");
  public static final Field FNA = TABLE.flags("FNA", 524, 1, "Format NVM Attributes");
  public static final Field VWC = TABLE.flags("VWC", 525, 1, "Volatile Write Cache");
  public static final Field AWUN =
      TABLE.number("AWUN", 526, 2, "Atomic Write Unit Normal, logical blocks, zero-based");
  public static final Field AWUPF =
      TABLE.number("AWUPF", 528, 2, "Atomic Write Unit Power Fail, logical blocks, zero-based");
  public static final Field ICSVSCC =
      TABLE.flags("ICSVSCC", 530, 1, "I/O Command Set Vendor Specific Command Configuration");
  public static final Field NWPC =
      TABLE.flags("NWPC", 531, 1, "Namespace Write Protection Capabilities");
  public static final Field ACWU =
      TABLE.number("ACWU", 532, 2, "Atomic Compare and Write Unit, logical blocks, zero-based");
  public static final Field OCFS = TABLE.flags("OCFS", 534, 2, "Optional Copy Formats Supported");
  public static final Field SGLS = TABLE.flags("SGLS", 536, 4, "SGL Support");
  public static final Field MNAN =
      TABLE.number("MNAN", 540, 4, "Maximum Number of Allowed Namespaces");
  public static final Field MAXDNA =
      TABLE.number("MAXDNA", 544, 16, "Maximum Domain Namespace Attachments");
  public static final Field MAXCNA =
      TABLE.number("MAXCNA", 560, 4, "Maximum I/O Controller Namespace Attachments");
  public static final Field SUBNQN =
      TABLE.zeroPaddedText("SUBNQN", 768, 256, "NVM Subsystem NVMe Qualified Name");

  private static final int PSD = 2048;

  /**
   * Wraps the first 4096 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public IdentifyController(MemorySegment segment) {
    super(segment, SIZE, TABLE);
  }

  /** The descriptor of power state {@code index}, 0..31; a view of this structure's memory. */
  public PowerStateDescriptor psd(int index) {
    Objects.checkIndex(index, POWER_STATES);
    return new PowerStateDescriptor(
        s.asSlice(PSD + (long) index * PowerStateDescriptor.SIZE, PowerStateDescriptor.SIZE));
  }
}
