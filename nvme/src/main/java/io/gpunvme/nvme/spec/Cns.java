package io.gpunvme.nvme.spec;

/** Controller or Namespace Structure: what Identify returns, CDW10 bits 7:0 (Base 2.0, 5.17). */
public final class Cns {
  /** Identify Namespace. */
  public static final int NAMESPACE = 0x00;

  /** Identify Controller. */
  public static final int CONTROLLER = 0x01;

  /** Active Namespace ID list. */
  public static final int ACTIVE_NAMESPACES = 0x02;

  /** Namespace Identification Descriptor list. */
  public static final int NAMESPACE_DESCRIPTORS = 0x03;

  /** NVM Set List. */
  public static final int NVM_SET_LIST = 0x04;

  /** I/O Command Set specific Identify Namespace. */
  public static final int CSI_NAMESPACE = 0x05;

  /** I/O Command Set specific Identify Controller. */
  public static final int CSI_CONTROLLER = 0x06;

  /** I/O Command Set specific Active Namespace ID list. */
  public static final int CSI_ACTIVE_NAMESPACES = 0x07;

  /** I/O Command Set Independent Identify Namespace. */
  public static final int CSI_INDEPENDENT_NAMESPACE = 0x08;

  /** Allocated Namespace ID list. */
  public static final int ALLOCATED_NAMESPACES = 0x10;

  /** Identify Namespace of an allocated NSID. */
  public static final int ALLOCATED_NAMESPACE = 0x11;

  /** Controller list of an NSID. */
  public static final int ATTACHED_CONTROLLERS = 0x12;

  /** Controller list of the NVM subsystem. */
  public static final int SUBSYSTEM_CONTROLLERS = 0x13;

  /** Primary Controller Capabilities. */
  public static final int PRIMARY_CONTROLLER_CAPABILITIES = 0x14;

  /** Secondary Controller list. */
  public static final int SECONDARY_CONTROLLERS = 0x15;

  /** Namespace Granularity List. */
  public static final int NAMESPACE_GRANULARITY = 0x16;

  /** UUID List. */
  public static final int UUID_LIST = 0x17;

  /** Domain List. */
  public static final int DOMAIN_LIST = 0x18;

  /** Endurance Group List. */
  public static final int ENDURANCE_GROUPS = 0x19;

  /** I/O Command Set specific Allocated Namespace ID list. */
  public static final int CSI_ALLOCATED_NAMESPACES = 0x1A;

  /** I/O Command Set specific Identify Namespace of an allocated NSID. */
  public static final int CSI_ALLOCATED_NAMESPACE = 0x1B;

  /** I/O Command Set list. */
  public static final int IO_COMMAND_SETS = 0x1C;

  private Cns() {}

  /** Returns the specification's name, or {@code "CNS ..h"} for a value not listed here. */
  public static String name(int value) {
    return switch (value) {
      case NAMESPACE -> "Identify Namespace";
      case CONTROLLER -> "Identify Controller";
      case ACTIVE_NAMESPACES -> "Active Namespace ID list";
      case NAMESPACE_DESCRIPTORS -> "Namespace Identification Descriptor list";
      case NVM_SET_LIST -> "NVM Set List";
      case CSI_NAMESPACE -> "I/O Command Set specific Identify Namespace";
      case CSI_CONTROLLER -> "I/O Command Set specific Identify Controller";
      case CSI_ACTIVE_NAMESPACES -> "I/O Command Set specific Active Namespace ID list";
      case CSI_INDEPENDENT_NAMESPACE -> "I/O Command Set Independent Identify Namespace";
      case ALLOCATED_NAMESPACES -> "Allocated Namespace ID list";
      case ALLOCATED_NAMESPACE -> "Identify Namespace of an allocated NSID";
      case ATTACHED_CONTROLLERS -> "Controller list of an NSID";
      case SUBSYSTEM_CONTROLLERS -> "Controller list of the NVM subsystem";
      case PRIMARY_CONTROLLER_CAPABILITIES -> "Primary Controller Capabilities";
      case SECONDARY_CONTROLLERS -> "Secondary Controller list";
      case NAMESPACE_GRANULARITY -> "Namespace Granularity List";
      case UUID_LIST -> "UUID List";
      case DOMAIN_LIST -> "Domain List";
      case ENDURANCE_GROUPS -> "Endurance Group List";
      case CSI_ALLOCATED_NAMESPACES -> "I/O Command Set specific Allocated Namespace ID list";
      case CSI_ALLOCATED_NAMESPACE ->
          "I/O Command Set specific Identify Namespace of an allocated NSID";
      case IO_COMMAND_SETS -> "I/O Command Set list";
      default -> "CNS %02Xh".formatted(value);
    };
  }
}
