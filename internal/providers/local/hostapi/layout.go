package hostapi

import "path/filepath"

// HostsDir is the folder of all hosts in a plane's data directory. A host's directory has a short
// name, because the path of a socket must not be long.
func HostsDir(dataDir string) string { return filepath.Join(dataDir, "local") }

// Dir is the directory of one host.
type Dir string

// ClusterFile says for which cluster the host is.
func (d Dir) ClusterFile() string { return filepath.Join(string(d), "cluster.json") }

// LockFile is held by the host while it runs.
func (d Dir) LockFile() string { return filepath.Join(string(d), "lock") }

// Socket is where the host answers.
func (d Dir) Socket() string { return filepath.Join(string(d), "host.sock") }

// LogFile is the host's log.
func (d Dir) LogFile() string { return filepath.Join(string(d), "host.log") }

// MachinesDir is the folder of all machines.
func (d Dir) MachinesDir() string { return filepath.Join(string(d), "machines") }

// MachineDir is the directory of one machine.
func (d Dir) MachineDir(name string) MachineDir {
	return MachineDir(filepath.Join(d.MachinesDir(), name))
}

// MachineDir is the directory of one machine.
type MachineDir string

// SpecFile holds the MachineSpec.
func (d MachineDir) SpecFile() string { return filepath.Join(string(d), "machine.json") }

// AddressFile holds the machine's address; it is chosen once.
func (d MachineDir) AddressFile() string { return filepath.Join(string(d), "address") }

// ClusterFile holds the Cluster, for the boot; the host writes it.
func (d MachineDir) ClusterFile() string { return filepath.Join(string(d), "cluster.json") }

// BootFile holds the BootStatus; the boot writes it.
func (d MachineDir) BootFile() string { return filepath.Join(string(d), "boot.json") }

// NodeFile holds the NodeRegistration; the boot writes it.
func (d MachineDir) NodeFile() string { return filepath.Join(string(d), "node.json") }

// OffFile is there while the machine is powered off.
func (d MachineDir) OffFile() string { return filepath.Join(string(d), "off") }

// PartitionFile is there while the machine is cut off from the network.
func (d MachineDir) PartitionFile() string { return filepath.Join(string(d), "partitioned") }

// RootFS is the root of the machine's own file system.
func (d MachineDir) RootFS(elem ...string) string {
	return filepath.Join(append([]string{string(d), "root"}, elem...)...)
}

// LogDir is the folder of the machine's log files.
func (d MachineDir) LogDir() string { return filepath.Join(string(d), "log") }

// LogFile is the log file of a process, or of the boot.
func (d MachineDir) LogFile(process string) string { return filepath.Join(d.LogDir(), process+".log") }
