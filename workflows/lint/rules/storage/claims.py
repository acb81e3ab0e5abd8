"""PersistentVolumeClaims, and how many pods mount them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.volume import VolumeClaim, claim_of, claims_in
from argosy.workflows.manifests.workload import Workload

# Disks that one node attaches: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes
_DISKS: Final = (
    *("ebs.csi.aws.com", "kubernetes.io/aws-ebs", "pd.csi.storage.gke.io", "kubernetes.io/gce-pd"),
    *("disk.csi.azure.com", "kubernetes.io/azure-disk", "cinder.csi.openstack.org", "kubernetes.io/cinder"),
    *("blockvolume.csi.oraclecloud.com", "rancher.io/local-path"),
    *("dobs.csi.digitalocean.com", "csi.vsphere.vmware.com"),
)
_DISK_CLASSES: Final = (
    *("gp2", "gp3", "ebs-sc", "standard-rwo", "premium-rwo", "managed-csi", "managed-premium", "managed-csi-premium"),
    *("oci-bv", "local-path", "do-block-storage", "linode-block-storage"),
)


def _mounting(workload: Workload) -> Iterator[tuple[Role, Node]]:
    for role in workload.roles:
        for volume in role.pod.volumes.values():
            yield role, volume
        if workload.family == "volcano":
            for volume in workload.spec["volumes"]:
                yield role, volume


def _claim(role: Role, volume: Node, bundle: Bundle) -> VolumeClaim | None:
    if volume["volumeClaim"]:
        return VolumeClaim(volume["volumeClaimName"].text, volume["volumeClaim"])
    return claim_of(volume, role.pod, bundle)


@rule("STORE011", Level.WARNING, on=Workload)
def too_many_pods(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """ReadWriteOnce is one node, ReadWriteOncePod is one pod."""
    if workload.family == "argo":  # its pods run one after the other, as far as a template tells
        return
    users: dict[str, list[tuple[Role, Node, VolumeClaim]]] = defaultdict(list)
    for role, volume in _mounting(workload):
        claim = _claim(role, volume, bundle)
        if claim is not None and not (claim.template and volume["ephemeral"]):
            users[claim.name].append((role, volume, claim))
    for name, found in users.items():
        roles = {id(role): role for role, _, _ in found}  # two volumes of one pod may be of the same claim
        pods = sum(role.replicas or 0 for role in roles.values())
        claim = found[0][2]
        node = found[0][1].at("persistentVolumeClaim.claimName") or found[0][1]
        if pods > 1 and "ReadWriteOncePod" in claim.modes:
            yield Problem(
                node,
                f"the claim {name!r} is ReadWriteOncePod and {pods} pods mount it: one starts, the others stay pending",
                "make the claim ReadWriteMany, on storage that offers it",
                level=Level.ERROR,
            )
        elif pods > 1 and claim.modes and not {"ReadWriteMany", "ReadOnlyMany"} & set(claim.modes):
            yield Problem(
                node,
                f"the claim {name!r} is ReadWriteOnce, which one node mounts, and {pods} pods want it: those on other "
                "nodes wait for it until the run times out",
                "make the claim ReadWriteMany, on storage that offers it (NFS, EFS, Filestore, Lustre, CephFS)",
            )


@rule("STORE013", Level.WARNING, on=Document)
def disk_for_many(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A disk is attached to one node: a claim for many on such a class is never bound."""
    for claim in claims_in(document):
        named = claim.spec["storageClassName"]
        many = [each for each in claim.spec["accessModes"] if each.text == "ReadWriteMany"]
        if not many or claim.block or not named.text:
            continue
        found = bundle.find("StorageClass", named.text, document)
        provisioner = found.root["provisioner"].text if found is not None else ""
        if provisioner in _DISKS or (not provisioner and named.text in _DISK_CLASSES):
            yield Problem(
                many[0],
                f"{named.text!r} makes disks ({provisioner or 'by its name'}), which one node attaches: a claim for "
                "ReadWriteMany stays pending",
                "take a class of a file system: NFS, EFS, FSx for Lustre, Filestore, Azure Files, CephFS",
            )
