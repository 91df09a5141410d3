"""The folder around the files of a zip, which the workspace does not have."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0012_left_at")]

    operations = [
        migrations.AddField("upload", "folder", models.CharField(max_length=255, blank=True, default=""))
    ]
