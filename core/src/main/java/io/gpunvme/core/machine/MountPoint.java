package io.gpunvme.core.machine;

/**
 * A mounted file system.
 *
 * @param number major and minor of its device; an invented one for btrfs and the like
 * @param source what was mounted, often a device node
 * @param target where
 * @param type of the file system
 */
public record MountPoint(String number, String source, String target, String type) {}
