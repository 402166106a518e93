//! The mappings that come with rezus.

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../mappings/", $name)))),*]
    };
}

/// File names and texts.
pub(super) const FILES: &[(&str, &str)] = files![
    "archive.yaml",
    "argocd.yaml",
    "aws.yaml",
    "azurerm.yaml",
    "cloudflare.yaml",
    "cloudinit.yaml",
    "digitalocean.yaml",
    "equinix.yaml",
    "external.yaml",
    "flux.yaml",
    "github.yaml",
    "gitlab.yaml",
    "google.yaml",
    "hcloud.yaml",
    "helm.yaml",
    "http.yaml",
    "incus.yaml",
    "kubectl.yaml",
    "kubernetes.yaml",
    "kustomization.yaml",
    "libvirt.yaml",
    "linode.yaml",
    "local.yaml",
    "matchbox.yaml",
    "minio.yaml",
    "null.yaml",
    "oci.yaml",
    "openstack.yaml",
    "ovh.yaml",
    "proxmox-bpg.yaml",
    "proxmox-telmate.yaml",
    "random.yaml",
    "scaleway.yaml",
    "sops.yaml",
    "tailscale.yaml",
    "talos.yaml",
    "template.yaml",
    "terraform.yaml",
    "time.yaml",
    "tls.yaml",
    "vault.yaml",
    "vsphere.yaml",
    "vultr.yaml",
    "xenorchestra.yaml",
];
